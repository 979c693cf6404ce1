import FeedJSON
import FeedModel
import FeedSystem

/// A catalog with one collection.
final class CollectionUnderTest {
  static let elementBytes = 200
  /// The maximum number of elements that are written and scanned before they are committed in a measured loop.
  private static let prepared = 8192

  private let catalog: Catalog
  private let feed: Feed
  private let collection: CollectionKind
  private let size: Int
  private var random = BenchmarkRandom(seed: 7)
  private var version = 0

  /// - Parameter members: the members of the definition besides the name and the kind, as JSON.
  init(_ members: String, size: Int) throws {
    var limits = Limits()
    limits.maxElements = max(limits.maxElements, size * 2)
    limits.maxSections = max(limits.maxSections, size * 2)
    limits.maxRequestRows = max(limits.maxRequestRows, size * 4)
    catalog = Catalog(limits: limits, seed: 1)
    self.size = size
    var scanner = JSONScanner()
    var text = ByteBuffer()
    text.append(string: #"{"feed":"bench","kind":"collection",\#(members)}"#)
    catalog.begin(at: Instant(nanoseconds: 1))
    try catalog.define(try FeedDefinition(parsing: try scanner.scan(text.bytes), limits: limits), replace: false)
    catalog.finish()
    feed = try catalog.feed(named: "bench")
    collection = try catalog.collection(named: "bench")
    // A watched feed has a history.
    feed.beginHistory()
    var next = 0
    while next < size {
      let ids = Array(next..<min(size, next + Self.prepared))
      try push(ids)
      next += ids.count
    }
  }

  /// Measures runs of commits. The inverse operation after each run is not measured.
  func measure(_ operation: CollectionOperation, count: Int, runs: Int) throws -> (sample: Sample, count: Int) {
    let batch = min(count, Self.prepared)
    let rounds = max(1, count / batch)
    var times: [Double] = []
    for run in 0...runs {
      var time: UInt64 = 0
      for _ in 0..<rounds { time += try measure(operation, batch) }
      catalog.trimHistories(before: Instant(nanoseconds: .max))
      if run > 0 { times.append(Double(time)) }
    }
    return (Sample(times), batch * rounds)
  }

  private func measure(_ operation: CollectionOperation, _ batch: Int) throws -> UInt64 {
    let new = Array(size..<(size + batch))
    switch operation {
    case .update: return try push((0..<batch).map { _ in random.below(size) })
    case .insert:
      let time = try push(new)
      try delete(new)
      return time
    case .delete:
      try push(new)
      return try delete(new)
    }
  }

  func set(_ ids: Range<Int>) throws -> UInt64 {
    try commitOnce(elements(Array(ids)).array()) { try collection.set($0, in: catalog.commit) }
  }

  /// Measures one `delete` of these identities.
  func delete(_ ids: StrideTo<Int>) throws -> UInt64 {
    let texts = Texts()
    for id in ids { texts.append("\(id)") }
    return try commitOnce(texts.array()) { try collection.delete(ids: $0, in: catalog.commit) }
  }

  /// Measures a redefinition with other members.
  func redefine(_ members: String) throws -> UInt64 {
    let texts = Texts()
    texts.append(#"{"feed":"bench","kind":"collection",\#(members)}"#)
    return try commitOnce(texts.array()) { array in
      for definition in array.elements {
        try catalog.define(try FeedDefinition(parsing: definition, limits: Limits()), replace: true)
      }
    }
  }

  private func commitOnce(_ array: consuming ByteBuffer, _ body: (JSONView) throws -> Void) throws -> UInt64 {
    var scanner = JSONScanner()
    let root = try scanner.scan(array.bytes)
    let start = ProcessorClock.now
    catalog.begin(at: Instant(nanoseconds: start))
    try body(root)
    catalog.finish()
    return ProcessorClock.now - start
  }

  /// Measures commits of one element for each identity. Each element differs from the earlier ones.
  @discardableResult
  private func push(_ ids: [Int]) throws -> UInt64 {
    try commitEach(of: elements(ids).array()) { try collection.update($0, in: catalog.commit) }
  }

  private func elements(_ ids: [Int]) -> Texts {
    let texts = Texts()
    for id in ids {
      version += 1
      let place = 1_700_000_000_000 + random.below(1_000_000_000)
      let head = """
        {"id":\(id),"version":\(version),"priority":\(random.below(10)),"at":\(place),"text":"
        """
      texts.append(head + random.words(max(1, Self.elementBytes - head.utf8.count - 2)) + "\"}")
    }
    return texts
  }

  @discardableResult
  private func delete(_ ids: [Int]) throws -> UInt64 {
    let texts = Texts()
    for id in ids.shuffled(using: &random) { texts.append("\(id)") }
    return try commitEach(of: texts.array()) { try collection.delete($0, in: catalog.commit) }
  }

  /// Measures one commit for each element of a JSON array, without scanning it.
  private func commitEach(of array: consuming ByteBuffer, _ body: (JSONView) throws -> Void) throws -> UInt64 {
    var scanner = JSONScanner()
    let root = try scanner.scan(array.bytes)
    let start = ProcessorClock.now
    for element in root.elements {
      catalog.begin(at: Instant(nanoseconds: start))
      try body(element)
      catalog.finish()
    }
    return ProcessorClock.now - start
  }
}

/// An operation on a collection, with one commit for each element.
enum CollectionOperation: String {
  /// Replaces an existing element, chosen at random.
  case update
  /// Adds an element.
  case insert
  /// Removes one of the elements added last.
  case delete
}
