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
  /// A step in which an expression is compiled takes about 0.2 microseconds.
  private static let weightOfPatterns = 16

  private let texts: any QueryTexts
  private let path: Path
  /// The time that a step takes, compared with others.
  private let weight: Int
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
    weight = path.compilesPatterns ? Self.weightOfPatterns : 1
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
      left -= WorkCost.reading(1, bytes: text.count) + WorkCost.steps(steps &* weight)
      texts.didEvaluate()
    }
    guard texts.isFinished else { return false }
    return !texts.areBackwards || nodes.reverse(budget: &left)
  }

  /// Evaluates the next texts on the stack, until the slice of a turn is used up between two of them.
  func workOnStack() {
    var left = LongAnswers.turnBudget
    do throws(FeedError) {
      while let text = try texts.next(&left), let steps = try evaluateLong(text) {
        left -= WorkCost.reading(1, bytes: text.count) + WorkCost.steps(steps &* weight)
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
    nodes.appendResult(to: &out, revision: texts.revision)
  }
}

/// The nodes that a query found, and their places if these are requested, as JSON text.
///
/// Nodes are grouped by element, so that the groups can be written in reverse order.
struct QueryNodes: ~Copyable {
  private let limits: Limits
  private let withPlaces: Bool
  /// The nodes, separated by commas, and the same of the places of their elements: null for a node outside the elements.
  private var nodes = ByteBuffer()
  private var places = ByteBuffer()
  /// The end of what precedes each group.
  private var groups: [(nodes: Int, places: Int)] = []
  /// The groups that were put in reverse order.
  private var reversedNodes = ByteBuffer()
  private var reversedPlaces = ByteBuffer()

  init(limits: Limits, places: Bool) { (self.limits, withPlaces) = (limits, places) }

  /// The memory in bytes.
  var memory: Int {
    nodes.capacity + places.capacity + groups.count * 16 + reversedNodes.capacity + reversedPlaces.capacity
  }

  var size: Int { nodes.count + places.count }

  /// A position between two nodes.
  struct Position {
    fileprivate let nodes: Int
    fileprivate let places: Int
    fileprivate let groups: Int
  }

  /// The position after the last node.
  var end: Position { Position(nodes: nodes.count, places: places.count, groups: groups.count) }

  /// Discards the nodes after a position.
  mutating func truncate(to end: Position) {
    nodes.truncate(to: end.nodes)
    places.truncate(to: end.places)
    groups.removeLast(groups.count - end.groups)
  }

  mutating func beginGroup() {
    if groups.last?.nodes != nodes.count { groups.append((nodes.count, places.count)) }
  }

  mutating func append(_ node: JSONView, at place: IndexPath?) {
    if size > limits.maxFrame { return }
    let isFirst = nodes.isEmpty
    if !isFirst { nodes.append(UInt8(ascii: ",")) }
    nodes.append(compact: node)
    guard withPlaces else { return }
    if !isFirst { places.append(UInt8(ascii: ",")) }
    if let place { places.append(place) } else { places.append("null") }
  }

  /// Throws if the nodes do not fit in an answer, or if the query took too many steps.
  /// - Parameter steps: the number of steps left; negative if there were too many.
  func check(steps: Int) throws(FeedError) {
    if steps < 0 { throw Self.tooLarge(\.maxQuerySteps, limits) }
    if size > limits.maxFrame { throw Self.tooLarge(\.maxFrame, limits) }
  }

  static func tooLarge(_ limit: WritableKeyPath<Limits, Int>, _ limits: Limits) -> FeedError {
    limits.exceeded(limit, "narrow the path, watch the feed and query your copy")
  }

  /// Puts the groups in reverse order, some in each call. Returns whether all are.
  mutating func reverse(budget left: inout Int) -> Bool {
    while left > 0, let group = groups.popLast() {
      Self.move(nodes, from: group.nodes, to: &reversedNodes)
      left -= WorkCost.reading(1, bytes: nodes.count - group.nodes)
      nodes.truncate(to: group.nodes)
      Self.move(places, from: group.places, to: &reversedPlaces)
      places.truncate(to: group.places)
    }
    guard groups.isEmpty else { return false }
    swap(&nodes, &reversedNodes)
    swap(&places, &reversedPlaces)
    return true
  }

  /// Appends the last group of a list, which begins with a comma unless it is the first one.
  private static func move(_ list: borrowing ByteBuffer, from start: Int, to out: inout ByteBuffer) {
    if start == list.count { return }
    if !out.isEmpty { out.append(UInt8(ascii: ",")) }
    out.append(UnsafeRawBufferPointer(rebasing: list.bytes[(start > 0 ? start + 1 : 0)...]))
  }

  func appendResult(to out: inout ByteBuffer, revision: UInt64) {
    out.append("\"nodes\":[")
    out.append(nodes.bytes)
    if withPlaces {
      out.append("],\"places\":[")
      out.append(places.bytes)
    }
    out.append("],\"revision\":", integer: revision)
  }
}
