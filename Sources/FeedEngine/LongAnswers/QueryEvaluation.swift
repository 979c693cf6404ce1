import FeedChange
import FeedJSON
import FeedModel
import FeedQuery

/// Evaluates the path of a query over one text after another, and collects the nodes.
///
/// Short texts with paths of few steps are evaluated at once. Others are scanned and evaluated on the ``QueryStack``, in slices of
/// several turns.
final class QueryEvaluation {
  /// Evaluates the path over a text: its root, the steps, and what is called with each node.
  typealias Path = (JSONView, inout Int, EvaluationPace?, (JSONView) -> Void) -> Void

  /// The longest text that is evaluated at once, and the most steps.
  private static let shortText = 16 << 10
  private static let fewSteps = 16 << 10
  /// The tokens, steps and bytes of nodes between two looks at the clock.
  private static let tokensPerLook = 8 << 10
  private static let stepsPerLook = 2 << 10
  private static let bytesPerLook = 256 << 10

  private let path: Path
  private let limits: Limits
  private let stack: QueryStack
  private var scanner: JSONScanner
  /// The nodes that were found.
  private(set) var nodes: QueryNodes
  /// The error of the work that has ended on the stack.
  private var failure: FeedError?

  /// - Parameter maxDepth: the levels of the texts.
  init(_ path: @escaping Path, on stack: QueryStack, limits: Limits, maxDepth: Int, places: Bool) {
    self.path = path
    self.limits = limits
    self.stack = stack
    scanner = JSONScanner(maxDepth: maxDepth)
    nodes = QueryNodes(limits: limits, places: places)
  }

  /// The memory in bytes.
  var memory: Int { scanner.capacity * JSONScanner.tokenSize + nodes.memory }

  /// Whether a part of the work was done on the stack, and the rest is left.
  var isOnStack: Bool { stack.isOwned(by: self) }

  /// Whether the next slice of ``evaluateLong(_:place:)`` can be done now.
  var canGoOn: Bool { stack.isFree(for: self) }

  /// Ends the work on the stack. The text may then be freed.
  func cancel() { stack.cancel(self) }

  /// Evaluates the path over a text if that takes little work. Returns nil, without any effect, if it may take more; otherwise the
  /// steps taken.
  ///
  /// - Parameter place: the place of the element that contains a node.
  func evaluateShort(
    _ text: UnsafeRawBufferPointer, place: (_ node: JSONView, _ root: JSONView) -> IndexPath?
  ) throws(FeedError) -> Int? {
    guard text.count <= Self.shortText, !stack.isEager else { return nil }
    let root = try scan { scanner throws(JSONError) in try scanner.scan(text) }
    let start = nodes.end
    let allowed = min(limits.maxQuerySteps, Self.fewSteps)
    var steps = allowed
    nodes.beginGroup()
    path(root, &steps, nil) { nodes.append($0, at: place($0, root)) }
    if steps < 0, allowed < limits.maxQuerySteps {
      nodes.truncate(to: start)
      return nil
    }
    try nodes.check(steps: steps)
    return allowed - steps
  }

  /// Evaluates the path over a text, or goes on with it. Returns whether it is done.
  ///
  /// - Precondition: `canGoOn`. The arguments are the same until it is done, and the text stays in place.
  func evaluateLong(
    _ text: UnsafeRawBufferPointer, place: @escaping (_ node: JSONView, _ root: JSONView) -> IndexPath?
  ) throws(FeedError) -> Bool {
    // The stack keeps the object until the work has ended.
    let isDone = stack.run(self) { [unowned self] in
      do throws(FeedError) { try work(text, place) } catch { failure = error }
    }
    guard isDone else { return false }
    if let failure { throw failure }
    return true
  }

  private func work(
    _ text: UnsafeRawBufferPointer, _ place: (_ node: JSONView, _ root: JSONView) -> IndexPath?
  ) throws(FeedError) {
    let stack = stack
    var scanned: JSONView?
    while scanned == nil {
      scanned = try scan { scanner throws(JSONError) in
        try scanner.scanPart(text, tokens: stack.isEager ? 1 : Self.tokensPerLook)
      }
      if scanned == nil, !stack.mayGoOn() { return }
    }
    guard let root = scanned else { return }
    var steps = limits.maxQuerySteps
    var looked = nodes.size
    nodes.beginGroup()
    let pace = EvaluationPace(every: stack.isEager ? 1 : Self.stepsPerLook) { stack.mayGoOn() }
    path(root, &steps, pace) { node in
      nodes.append(node, at: place(node, root))
      if nodes.size - looked > Self.bytesPerLook {
        looked = nodes.size
        _ = stack.mayGoOn()
      }
    }
    try nodes.check(steps: steps)
  }

  private func scan<Result>(
    _ body: (inout JSONScanner) throws(JSONError) -> Result
  ) throws(FeedError) -> Result {
    do throws(JSONError) {
      return try body(&scanner)
    } catch {
      throw .internalError(reason: "the elements do not parse: \(error.message)")
    }
  }
}
