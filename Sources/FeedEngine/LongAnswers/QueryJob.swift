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
  private let source: QuerySource
  private var rows: ElementSelection
  /// The row that the path reads next; nil if none is left.
  private var wanted: Int?
  /// Whether the path selects rows in descending order. The nodes are reversed at the end.
  private let isBackwards: Bool
  private let evaluation: QueryEvaluation
  private var row = 0
  /// The elements that were read and not evaluated, from `nextRead` on. Retained.
  private var read: [(element: ElementText, place: IndexPath)] = []
  private var nextRead = 0
  /// Whether the next of them cannot be evaluated at once.
  private var isLong = false

  var wantsStack: Bool { isLong && !evaluation.isOnStack }
  var memory: Int { evaluation.memory + reversed.count * 8 }

  init(_ path: ElementwisePath, over source: QuerySource, places: Bool, on stack: QueryStack) {
    self.source = source
    rows = path.selection(count: source.count)
    wanted = rows.next()
    var ahead = rows
    isBackwards = ahead.next().map { [wanted] in $0 < wanted ?? 0 } ?? false
    evaluation = QueryEvaluation(
      { path.evaluate($0, steps: &$1, pace: $2, $3) }, on: stack, limits: source.limits,
      maxDepth: source.limits.maxDepth, places: places)
    if isBackwards {
      let all = ([wanted].compactMap { $0 } + Array(rows)).reversed()
      reversed = Array(all)
      wanted = reversed.first
    }
  }

  deinit {
    // The evaluation reads an element.
    evaluation.cancel()
    while nextRead < read.count { didEvaluate() }
  }

  /// The rows of a backward selection, ascending; empty for other selections.
  private var reversed: [Int] = []
  private var nextReversed = 1

  func advance(budget: Int) throws(FeedError) -> Bool {
    var left = budget
    // Rows are read in order; rows that the path does not select are skipped.
    while left > 0 {
      if nextRead < read.count {
        guard let cost = try evaluateNext() else { return false }
        left -= cost
      } else if wanted == nil || source.isFinished {
        return true
      } else {
        left -= readRows(max: min(left, 64))
      }
    }
    return nextRead == read.count && (wanted == nil || source.isFinished)
  }

  /// Evaluates the path over the next element that was read. Returns the units of work; nil if it is left for another turn.
  private func evaluateNext() throws(FeedError) -> Int? {
    let (element, place) = read[nextRead]
    var cost = WorkCost.reading(1, bytes: element.text.count)
    if !isLong {
      if let steps = try evaluation.evaluateShort(element.text, place: { _, _ in place }) {
        cost += WorkCost.steps(steps)
        didEvaluate()
        return cost
      }
      // It waits until it is its turn on the stack.
      isLong = true
      return nil
    }
    guard evaluation.canGoOn, try evaluation.evaluateLong(element.text, place: { _, _ in place }) else { return nil }
    isLong = false
    didEvaluate()
    return cost
  }

  private func didEvaluate() {
    read[nextRead].element.release()
    nextRead += 1
    if nextRead == read.count {
      read.removeAll(keepingCapacity: true)
      nextRead = 0
    }
  }

  /// Reads up to `max` rows and keeps those that the path selects. Returns the number of rows.
  private func readRows(max: Int) -> Int {
    source.next(max: max) { element, place in
      defer { row += 1 }
      guard row == wanted else { return }
      element.retain()
      read.append((element, place))
      wanted = nextWanted()
    }
  }

  private func nextWanted() -> Int? {
    if !isBackwards { return rows.next() }
    defer { nextReversed += 1 }
    return nextReversed < reversed.count ? reversed[nextReversed] : nil
  }

  func appendResult(to out: inout ByteBuffer) {
    evaluation.nodes.appendResult(to: &out, revision: source.revision, backwards: isBackwards)
  }
}

/// The elements of a feed in flattened order, at one revision, read once in order.
final class QuerySource {
  let limits: Limits
  /// The number of elements.
  var count: Int { snapshot.count }
  private let snapshot: FeedSnapshot

  var revision: UInt64 { snapshot.revision }
  var isFinished: Bool { snapshot.isFinished }

  /// - Parameter memory: what the memory of the snapshot is charged to.
  init(_ feed: Feed, limits: Limits, chargedTo memory: SnapshotMemory) {
    self.limits = limits
    snapshot = feed.makeSnapshot(chargedTo: memory)
  }

  /// Calls `body` with up to `max` elements of one section and their places. Returns the number of elements; 0 at the
  /// end.
  func next(max: Int, _ body: (ElementText, IndexPath) -> Void) -> Int {
    let place = snapshot.place
    var row = place.row
    return snapshot.next(max: max) {
      body($0.element, IndexPath(section: place.section, row: row))
      row &+= 1
    }
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

  /// The bytes of the nodes.
  var size: Int { bytes.count }

  /// A position between two nodes.
  struct Position {
    fileprivate let bytes: Int
    fileprivate let nodes: Int
    fileprivate let groups: Int
  }

  /// The position after the last node.
  var end: Position { Position(bytes: bytes.count, nodes: places?.count ?? 0, groups: groups.count) }

  /// Discards the nodes after a position.
  mutating func truncate(to end: Position) {
    bytes.truncate(to: end.bytes)
    if let count = places?.count { places?.removeLast(count - end.nodes) }
    groups.removeLast(groups.count - end.groups)
  }

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
