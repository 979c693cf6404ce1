import FeedChange
import FeedJSON
import FeedModel
import FeedQuery
import FeedWire

/// `query`: a JSONPath over the array of a feed's elements in flattened order, at one revision.
///
/// Evaluates paths that apply to each element separately, in parts. `DocumentQueryJob` evaluates all other paths, over
/// one document of all elements.
final class QueryJob: Job {
  private let path: ElementwisePath
  private let source: QuerySource
  private var rows: ElementSelection
  /// The row that the path reads next; nil if none is left.
  private var wanted: Int?
  /// Whether the path selects rows in descending order. The nodes are reversed at the end.
  private let isBackwards: Bool
  private var scanner: JSONScanner
  private var nodes: QueryNodes
  private var row = 0
  /// The units of work left in the current call of `advance`.
  private var left = 0

  var memory: Int { nodes.memory + scanner.capacity * Self.tokenSize + reversed.count * 8 }

  /// The approximate bytes of a token on a scanner's tape.
  static let tokenSize = 8

  init(_ path: ElementwisePath, over source: QuerySource, places: Bool) {
    self.path = path
    self.source = source
    rows = path.selection(count: source.count)
    wanted = rows.next()
    var ahead = rows
    isBackwards = ahead.next().map { [wanted] in $0 < wanted ?? 0 } ?? false
    if isBackwards {
      let all = ([wanted].compactMap { $0 } + Array(rows)).reversed()
      reversed = Array(all)
      wanted = reversed.first
    }
    scanner = JSONScanner(maxDepth: source.limits.maxDepth)
    nodes = QueryNodes(limits: source.limits, places: places)
  }

  /// The rows of a backward selection, ascending; empty for other selections.
  private var reversed: [Int] = []
  private var nextReversed = 1

  func advance(budget: Int) throws(FeedError) -> Bool {
    left = budget
    // Rows are read in order; rows that the path does not select are skipped.
    while wanted != nil && left > 0 {
      let read = try read(max: min(left, 64))
      if read == 0 { break }
      left -= read
    }
    return wanted == nil || source.isFinished
  }

  private func read(max: Int) throws(FeedError) -> Int {
    var failure: FeedError?
    let read = source.next(max: max) { element, place in
      defer { row += 1 }
      left -= WorkCost.reading(0, bytes: element.count)
      guard row == wanted, failure == nil else { return }
      do throws(FeedError) { try evaluate(element, at: place) } catch { failure = error }
      wanted = nextWanted()
    }
    if let failure { throw failure }
    return read
  }

  private func nextWanted() -> Int? {
    if !isBackwards { return rows.next() }
    defer { nextReversed += 1 }
    return nextReversed < reversed.count ? reversed[nextReversed] : nil
  }

  private func evaluate(_ text: UnsafeRawBufferPointer, at place: IndexPath) throws(FeedError) {
    guard let element = try? scanner.scan(text) else { return }
    var steps = source.limits.maxQuerySteps
    nodes.beginGroup()
    path.evaluate(element, steps: &steps) { nodes.append($0, at: place) }
    left -= WorkCost.steps(source.limits.maxQuerySteps - steps)
    try nodes.check(steps: steps)
  }

  func appendResult(to out: inout ByteBuffer) {
    nodes.appendResult(to: &out, revision: source.revision, backwards: isBackwards)
  }
}

/// The elements of a feed in flattened order, at one revision, read once in order.
final class QuerySource {
  let limits: Limits
  /// The number of elements.
  let count: Int
  private let snapshot: FeedSnapshot
  private var section = 0

  var revision: UInt64 { snapshot.revision }
  var isFinished: Bool { section >= snapshot.sections.count }

  init(_ feed: Feed, limits: Limits) {
    self.limits = limits
    snapshot = feed.makeSnapshot()
    count = snapshot.sections.reduce(0) { $0 + $1.count }
  }

  /// Calls `body` with up to `max` elements of one section and their places. Returns the number of elements; 0 at the
  /// end.
  func next(max: Int, _ body: (UnsafeRawBufferPointer, IndexPath) -> Void) -> Int {
    while section < snapshot.sections.count {
      let rows = snapshot.sections[section]
      let at = UInt32(section)
      var row = UInt32(rows.position)
      let read = rows.next(max: max) {
        body($0.text, IndexPath(section: at, row: row))
        row &+= 1
      }
      if rows.position >= rows.count { section += 1 }
      if read > 0 { return read }
    }
    return 0
  }
}

/// The nodes that a query found, as JSON text.
///
/// Nodes are grouped by element, so that the groups can be written in reverse order.
struct QueryNodes: ~Copyable {
  private let limits: Limits
  private var bytes = ByteBuffer()
  /// The place of the element of each node, nil for a node outside the elements; nil if places are not requested.
  private var places: [IndexPath?]?
  /// The start of each group: the offset in the bytes, and the index of the first node.
  private var groups: [(bytes: Int, nodes: Int)] = []

  init(limits: Limits, places: Bool) {
    self.limits = limits
    self.places = places ? [] : nil
  }

  /// The memory in bytes.
  var memory: Int { bytes.capacity + groups.count * 16 + (places?.capacity ?? 0) * 16 }

  mutating func beginGroup() {
    if groups.last?.bytes != bytes.count { groups.append((bytes.count, places?.count ?? 0)) }
  }

  mutating func append(_ node: JSONView, at place: IndexPath?) {
    if bytes.count > limits.maxFrame { return }
    if bytes.count > (groups.last?.bytes ?? 0) { bytes.append(UInt8(ascii: ",")) }
    bytes.append(compact: node)
    places?.append(place)
  }

  /// Throws if the nodes do not fit in an answer, or if the query took too many steps.
  ///
  /// - Parameter steps: the number of steps left; negative if there were too many.
  func check(steps: Int) throws(FeedError) {
    if steps < 0 { throw Self.tooLarge("maxQuerySteps", limits.maxQuerySteps, flag: "--max-query-steps") }
    if bytes.count > limits.maxFrame { throw Self.tooLarge("maxFrame", limits.maxFrame, flag: "--max-frame") }
  }

  static func tooLarge(_ limit: String, _ value: Int, flag: String) -> FeedError {
    .limitExceeded(
      limit: limit, value: value,
      reason: "narrow the path, watch the feed and query your copy, or start feedd with a larger \(flag)")
  }

  func appendResult(to out: inout ByteBuffer, revision: UInt64, backwards: Bool) {
    out.append("\"nodes\":[")
    var isFirst = true
    let order = backwards ? Array(groups.indices.reversed()) : Array(groups.indices)
    for group in order {
      let end = group + 1 < groups.count ? groups[group + 1].bytes : bytes.count
      let start = groups[group].bytes
      if start == end { continue }
      if !isFirst { out.append(UInt8(ascii: ",")) }
      isFirst = false
      out.append(UnsafeRawBufferPointer(rebasing: bytes.bytes[start..<end]))
    }
    appendPlaces(order, to: &out)
    out.append("],\"revision\":")
    out.append(integer: revision)
  }

  private func appendPlaces(_ order: [Int], to out: inout ByteBuffer) {
    guard let places else { return }
    out.append("],\"places\":[")
    var isFirst = true
    for group in order {
      let end = group + 1 < groups.count ? groups[group + 1].nodes : places.count
      for place in places[groups[group].nodes..<end] {
        if isFirst { isFirst = false } else { out.append(UInt8(ascii: ",")) }
        if let place { out.append(place) } else { out.append("null") }
      }
    }
  }
}
