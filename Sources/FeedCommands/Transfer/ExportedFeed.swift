import FeedChange
import FeedClient
import FeedJSON
import FeedSystem

/// A feed in an export: its definition, and the feeds that must be defined before it.
///
/// An export has one JSON value on each line: for each feed its heading, then its elements. A feed follows the feeds that it
/// shows. A heading is the definition with two more members, by which ``ExportLines`` detects a truncated file: `count`, the
/// number of elements, for a feed that has elements of its own; and `following`, the number of feeds after this one, unless
/// it is 0.
struct ExportedFeed {
  let name: String
  let kind: String
  /// The members of the definition.
  private let definition: String
  /// The feeds and bins that the feed shows.
  private let shown: [String]
  /// Whether elements may be pushed; only `set` changes an array that is not editable.
  let isEditable: Bool
  /// Whether bins may share an element, and which bins are sorted.
  let overlaps: Bool
  let sortedBins: [Bool]

  /// The members that `describe` adds to a definition (see `Protocol/methods/describe.md`), and those of a heading.
  private static let status: Set<String> = [
    "shows", "sections", "counts", "count", "revision", "watchers", "source", "following", "group", "log",
  ]

  /// Parses an entry of the result of `feeds`, or a line of an export.
  init(_ description: JSONView) {
    name = description.member("feed")?.string ?? ""
    kind = description.member("kind")?.string ?? ""
    let members = description.members.filter { !Self.status.contains($0.key.string ?? "") }
    definition = members.map { "\($0.key.source):\(String(decoding: $0.value.compactText, as: UTF8.self))" }
      .joined(separator: ",")
    let children = description.member("children")?.elements.compactMap(\.string) ?? []
    let contents = description.member("contents")?.members.compactMap { $0.value.string } ?? []
    shown = children + contents + [description.member("of")?.string].compactMap { $0 }
    isEditable = description.member("editable")?.bool != false
    let bins = description.member("bins")
    sortedBins = bins?.elements.map { ($0.member("sort")?.count ?? 0) > 0 } ?? [false]
    overlaps = sortedBins.count > 1 && description.member("exclusive")?.bool != true
  }

  /// Whether the feed has elements of its own.
  var hasElements: Bool { ["collection", "array", "single"].contains(kind) }

  /// Returns the line before the elements.
  /// - Parameter following: the number of the feeds after this one.
  func heading(count: Int, following: Int) -> String {
    let elements = hasElements ? ",\"count\":\(count)" : ""
    return "{\(definition)\(elements)\(following > 0 ? ",\"following\":\(following)" : "")}"
  }

  func parameters(replace: Bool, animation: String? = nil) -> String {
    let hint = animation.map { ",\"animation\":\($0.quotedAsJSON)" } ?? ""
    return "{\(definition)\(replace ? ",\"replace\":true" : "")\(hint)}"
  }

  /// Whether another feed has the same definition.
  func isDefinedLike(_ other: ExportedFeed) -> Bool { definition == other.definition }

  /// Returns the named feeds and all feeds that they show, each after the feeds that it shows.
  /// - Throws: an error that names an unknown feed.
  static func ordered(_ names: [String], of feeds: [ExportedFeed]) throws(Failure) -> [ExportedFeed] {
    let byName = Dictionary(feeds.map { ($0.name, $0) }) { first, _ in first }
    var result: [ExportedFeed] = []
    var visited: Set<String> = []
    // Terminates: the daemon refuses cycles, and no feed is visited twice.
    func visit(_ name: String) -> Bool {
      guard let feed = byName[name] ?? name.lastIndex(of: "/").flatMap({ byName[String(name[..<$0])] }) else {
        return false
      }
      guard visited.insert(feed.name).inserted else { return true }
      for shown in feed.shown { _ = visit(shown) }
      result.append(feed)
      return true
    }
    if names.contains(FeedName.feeds) {
      throw .usage("export: '\(FeedName.feeds)' cannot be exported: the daemon derives it from the other feeds")
    }
    for name in names where !visit(name) {
      throw .client(
        .refused(
          RemoteError(
            code: RemoteError.unknownFeed, message: "unknown feed \"\(name)\"",
            data: Array("{\"feed\":\(name.quotedAsJSON)}".utf8))))
    }
    return result
  }
}

/// Merges the bins of a collection into one order that reproduces the same bins.
///
/// A bin without sort keeps the order of arrival, so its order is kept, unless such bins contradict each other: an element may
/// have come into one bin before another element, and into the next one after it. The order of a sorted bin matters only for
/// rows with equal keys; it is kept unless it contradicts the other bins.
struct BinMerge {
  private var elements: [[UInt8]] = []
  private var chains: [[Int]]
  private let isSorted: [Bool]
  private var numbers: [[UInt8]: Int] = [:]

  init(isSorted: [Bool]) {
    self.isSorted = isSorted
    chains = Array(repeating: [], count: isSorted.count)
  }

  /// Adds the next row of a bin. Equal texts are the same element, because different elements have different
  /// identities.
  mutating func add(_ element: [UInt8], bin: Int) {
    guard chains.indices.contains(bin) else { return }
    let number = numbers[element] ?? elements.count
    if number == elements.count {
      elements.append(element)
      numbers[element] = number
    }
    chains[bin].append(number)
  }

  /// Returns each element once. O(rows).
  func merged() -> [[UInt8]] {
    var heads = chains.map { _ in 0 }
    // For each element, the number of bins, and of unsorted bins, that have other elements before it.
    var waits = [(all: Int, unsorted: Int)](repeating: (0, 0), count: elements.count)
    var places = [[Int]](repeating: [], count: elements.count)
    for (bin, chain) in chains.enumerated() {
      for element in chain {
        waits[element].all += 1
        if !isSorted[bin] { waits[element].unsorted += 1 }
        places[element].append(bin)
      }
    }
    var isOut = [Bool](repeating: false, count: elements.count)
    var ready: [Int] = []
    var result: [[UInt8]] = []
    /// Advances a bin to its next element that is not in the result.
    func advance(_ bin: Int) {
      while heads[bin] < chains[bin].count, isOut[chains[bin][heads[bin]]] { heads[bin] += 1 }
      guard heads[bin] < chains[bin].count else { return }
      let element = chains[bin][heads[bin]]
      waits[element].all -= 1
      if !isSorted[bin] { waits[element].unsorted -= 1 }
      if waits[element].all == 0 { ready.append(element) }
    }
    // Every element before it is in the result.
    var first = 0
    /// The first element that is not in the result. All calls together are O(rows).
    func firstLeft() -> Int {
      while isOut[first] { first += 1 }
      return first
    }
    for bin in chains.indices { advance(bin) }
    while result.count < elements.count {
      let next = ready.popLast() ?? firstOfUnsorted(heads, waits) ?? firstLeft()
      isOut[next] = true
      result.append(elements[next])
      for bin in places[next] where heads[bin] < chains[bin].count && chains[bin][heads[bin]] == next { advance(bin) }
    }
    return result
  }

  /// An element that is first in each of its unsorted bins.
  private func firstOfUnsorted(_ heads: [Int], _ waits: [(all: Int, unsorted: Int)]) -> Int? {
    for (bin, head) in heads.enumerated() where head < chains[bin].count {
      if waits[chains[bin][head]].unsorted == 0 { return chains[bin][head] }
    }
    return nil
  }
}

/// The lines of an export, which can be read several times; see ``ExportedFeed`` for the format.
///
/// Each reading validates the whole file: every line is JSON that fits a frame, and all feeds and elements that the headings
/// announce are there.
struct ExportLines: ~Copyable {
  enum Line {
    case feed(Heading)
    /// An element of the last feed, and its place in the file.
    case element(JSONView, line: Int, column: Int)
  }

  /// The line before the elements of a feed.
  struct Heading {
    let feed: ExportedFeed
    /// The number of elements; nil for a feed that has none of its own.
    let count: Int?
    let line: Int
  }

  private let input: RepeatableInput
  private let hello: ServerHello

  init(_ input: consuming RepeatableInput, _ hello: ServerHello) {
    self.input = input
    self.hello = hello
  }

  /// Calls `take` with each line.
  /// - Throws: a usage error for an incomplete or malformed file, and what `take` throws.
  func read(_ take: (Line) throws(Failure) -> Void) throws(Failure) {
    // The frame has more members, and arrays and objects around the element.
    var reader = ElementReader(
      limit: max(hello.maxFrame - 256, 1), maxDepth: hello.maxDepth - PushTarget.longestEnvelopeDepth,
      opensArrays: false)
    var validator = ExportValidator()
    var offset = 0
    while true {
      let count = try Failure.ofSystem(try input.read(into: reader.room(), at: offset))
      offset += count
      count == 0 ? reader.finish() : reader.didFill(count)
      while let item = reader.next() { try take(validator.line(item)) }
      if count == 0 { break }
    }
    try validator.end()
  }
}

/// Counts the feeds and elements of an export that are still expected.
private struct ExportValidator {
  private var heading: ExportLines.Heading?
  /// The number of elements of the last feed that are still expected.
  private var missingElements = 0
  /// The number of feeds that are still expected. After the last one, another export may follow.
  private var missingFeeds = 0

  mutating func line(_ item: ElementReader.Item) throws(Failure) -> ExportLines.Line {
    switch item {
    case .flaw(let flaw): throw .usage("import: \(flaw)")
    case .element(let view, let line, let column) where missingElements > 0:
      missingElements -= 1
      return .element(view, line: line, column: column)
    case .element(let view, let line, _): return .feed(try begin(view, line))
    }
  }

  private mutating func begin(_ view: JSONView, _ line: Int) throws(Failure) -> ExportLines.Heading {
    let feed = ExportedFeed(view)
    guard !feed.name.isEmpty, !feed.kind.isEmpty else {
      throw .usage("import: line \(line): expected the definition of a feed, as feedclient export writes it")
    }
    let count = try number("count", of: view, line)
    let following = try number("following", of: view, line) ?? 0
    guard missingFeeds == 0 || following == missingFeeds - 1 else {
      throw .usage(
        "import: line \(line): \"following\" is \(following), not \(missingFeeds - 1): a part of the file is missing"
      )
    }
    missingElements = count ?? 0
    missingFeeds = following
    let heading = ExportLines.Heading(feed: feed, count: count, line: line)
    self.heading = heading
    return heading
  }

  /// A number of a heading; nil if it is absent.
  private func number(_ member: StaticString, of view: JSONView, _ line: Int) throws(Failure) -> Int? {
    guard let value = view.member(member) else { return nil }
    guard let number = value.int, number >= 0 else {
      throw .usage("import: line \(line): \"\(member)\" must be a number from 0")
    }
    return number
  }

  /// Throws unless the file has everything that its headings announce.
  func end() throws(Failure) {
    guard let heading else {
      throw .usage("import: the file is empty; feedclient export writes a line for each feed")
    }
    let place = "'\(heading.feed.name)', defined in line \(heading.line)"
    if missingElements > 0 {
      throw .usage("import: the file ends early: \(place), lacks \(counted(missingElements, "element"))")
    }
    if missingFeeds > 0 {
      throw .usage("import: the file ends early: \(counted(missingFeeds, "feed")) should follow \(place)")
    }
  }
}
