import FeedChange
import FeedJSON
import FeedModel
import FeedQuery

/// `query`: a JSONPath over the elements of a feed, at one revision.
///
/// Evaluates the path over one text after another, and collects the nodes: over each element that it selects, or over one document of
/// all elements. Short texts with paths of few steps are evaluated at once. Others are scanned and evaluated on a second stack,
/// in slices of several turns.
final class QueryJob: Job {
  /// Evaluates the path over a text: its root, the steps, and what is called with each node.
  typealias Path = (JSONView, inout Int, EvaluationPace?, (JSONView) -> Void) -> Void

  /// The longest text that is evaluated at once, and the most steps.
  private static let shortText = 16 << 10
  private static let fewSteps = 16 << 10
  /// The tokens, steps and bytes of nodes between two looks at the clock.
  private static let tokensPerLook = 8 << 10
  private static let stepsPerLook = 2 << 10
  private static let bytesPerLook = 256 << 10

  private let texts: any QueryTexts
  private let path: Path
  private let limits: Limits
  private let stack: ReadStack<QueryJob>
  private let uid: UInt32
  /// An array may be around the elements.
  private var scanner = JSONScanner(maxDepth: Limits.largestDepth + 1)
  private var nodes: QueryNodes
  /// The place in the queue of the stack until its part of the work has ended.
  private var place: Int?
  private var failure: FeedError?

  /// - Parameter uid: the user whose turn it is when the job has the stack.
  init(
    _ path: JSONPath, over feed: Feed, isSingle: Bool, places: Bool, limits: Limits, chargedTo memory: SnapshotMemory,
    on stack: ReadStack<QueryJob>, of uid: UInt32
  ) {
    (self.limits, self.stack, self.uid) = (limits, stack, uid)
    nodes = QueryNodes(limits: limits, places: places)
    let snapshot = feed.makeSnapshot(chargedTo: memory)
    if !isSingle, let path = path.elementwise() {
      texts = SelectedElements(path, of: snapshot)
      self.path = { path.evaluate($0, steps: &$1, pace: $2, $3) }
    } else {
      texts = QueryDocument(of: snapshot, isArray: !isSingle, places: places, limits)
      self.path = { path.evaluate($0, steps: &$1, pace: $2, $3) }
    }
  }

  var isWaiting: Bool { place != nil }
  var memory: Int { scanner.capacity * JSONScanner.tokenSize + nodes.memory + texts.memory }

  func cancel() {
    guard let place else { return }
    stack.cancel(self, at: place, of: uid)
    self.place = nil
  }

  func advance(budget left: inout Int) throws(FeedError) -> Bool {
    if let failure { throw failure }
    if isWaiting { return false }
    while let text = try texts.next(&left) {
      guard let steps = try evaluateShort(text) else {
        left -= WorkCost.steps(Self.fewSteps)
        place = stack.append(self, of: uid)
        return false
      }
      left -= WorkCost.reading(1, bytes: text.count) + WorkCost.steps(steps)
      texts.didEvaluate()
    }
    return texts.isFinished
  }

  /// Evaluates the next texts on the stack, until the slice of a turn is used up between two of them.
  func workOnStack() {
    var left = LongAnswers.turnBudget
    do throws(FeedError) {
      while let text = try texts.next(&left), let steps = try evaluateLong(text) {
        left -= WorkCost.reading(1, bytes: text.count) + WorkCost.steps(steps)
        texts.didEvaluate()
        if stack.isSliceOver { break }
      }
    } catch {
      failure = error
    }
    place = nil
  }

  /// Evaluates the path over a text if that takes little work. Returns the steps taken; nil, without any effect, if it may take more.
  private func evaluateShort(_ text: UnsafeRawBufferPointer) throws(FeedError) -> Int? {
    guard text.count <= Self.shortText, !stack.isEager else { return nil }
    let root = try scan { scanner throws(JSONError) in try scanner.scan(text) }
    return try evaluate(root, steps: min(limits.maxQuerySteps, Self.fewSteps), nil)
  }

  /// Evaluates the path over a text on the stack. Returns the steps taken; nil if that was cancelled.
  private func evaluateLong(_ text: UnsafeRawBufferPointer) throws(FeedError) -> Int? {
    let tokens = stack.isEager ? 1 : Self.tokensPerLook
    while !stack.isCancelled {
      if let root = try scan({ scanner throws(JSONError) in try scanner.scanPart(text, tokens: tokens) }) {
        let pace = EvaluationPace(every: stack.isEager ? 1 : Self.stepsPerLook) { [stack] in
          stack.look()
          return !stack.isCancelled
        }
        return try evaluate(root, steps: limits.maxQuerySteps, pace)
      }
      stack.look()
    }
    return nil
  }

  /// Evaluates the path with at most so many steps. Returns the steps taken; nil, without any effect, if it may take more, or if it
  /// was cancelled.
  private func evaluate(_ root: JSONView, steps allowed: Int, _ pace: EvaluationPace?) throws(FeedError) -> Int? {
    let start = nodes.end
    var steps = allowed
    var looked = nodes.size
    nodes.beginGroup()
    path(root, &steps, pace) { node in
      nodes.append(node, at: texts.place(of: node, root))
      if pace != nil && nodes.size - looked > Self.bytesPerLook {
        looked = nodes.size
        stack.look()
      }
    }
    if stack.isCancelled || steps < 0 && allowed < limits.maxQuerySteps {
      nodes.truncate(to: start)
      return nil
    }
    try nodes.check(steps: steps)
    return allowed - steps
  }

  private func scan<Result>(_ body: (inout JSONScanner) throws(JSONError) -> Result) throws(FeedError) -> Result {
    do throws(JSONError) {
      return try body(&scanner)
    } catch {
      throw .internalError(reason: "the elements do not parse: \(error.message)")
    }
  }

  func appendResult(to out: inout ByteBuffer) {
    nodes.appendResult(to: &out, revision: texts.revision, backwards: texts.areBackwards)
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
  /// - Parameter steps: the number of steps left; negative if there were too many.
  func check(steps: Int) throws(FeedError) {
    if steps < 0 { throw Self.tooLarge(\.maxQuerySteps, limits) }
    if bytes.count > limits.maxFrame { throw Self.tooLarge(\.maxFrame, limits) }
  }

  static func tooLarge(_ limit: WritableKeyPath<Limits, Int>, _ limits: Limits) -> FeedError {
    limits.exceeded(limit, "narrow the path, watch the feed and query your copy")
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
    out.append("],\"revision\":", integer: revision)
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
