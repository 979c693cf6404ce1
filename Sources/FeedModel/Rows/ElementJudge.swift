import FeedChange
import FeedJSON
import FeedQuery

/// Judges present elements by the filter of a request, its parameter `where`, within the steps that the request has left.
///
///     var judge = ElementJudge(filter, limits: limits, in: commit)
///     for element in elements where judge.accepts(element) { … }
///     try judge.checkSteps()
///
/// Steps are counted instead of time, so that replay makes the same decisions.
public struct ElementJudge: ~Copyable {
  private let filter: Filter
  private let limits: Limits
  private let log: UndoLog
  private var scanner = JSONScanner(maxDepth: Limits.largestDepth)
  /// Whether an element took too many steps.
  private var ranOut = false
  /// Whether the request had fewer steps left than an element may take.
  private var isShort = false

  /// - Parameter commit: the open commit, which is charged and may stop for its pace.
  public init(_ filter: Filter, limits: Limits, in commit: Commit) {
    (self.filter, self.limits) = (filter, limits)
    log = commit.log
  }

  /// Whether the filter accepts a stored element. After an element took too many steps, no other is accepted.
  public mutating func accepts(_ text: UnsafeRawBufferPointer) -> Bool {
    guard !ranOut, let element = try? scanner.scan(text, log.pace) else { return false }
    let limit = limits.maxQuerySteps
    let allowed = limits.countsAllWork ? min(limit, log.stepsLeft) : limit
    var steps = allowed
    let isAccepted = filter.accepts(element, steps: &steps, pace: log.pace.evaluations)
    ranOut = steps < 0
    isShort = allowed < limit
    if limits.countsAllWork { log.didUse(steps: allowed &- steps &+ 1) }
    log.pace.spend(1 &+ (allowed &- steps) / 64)
    return isAccepted
  }

  /// Throws `limitExceeded` if an element took too many steps.
  public func checkSteps() throws(FeedError) {
    guard ranOut else { return }
    throw limits.tooManySteps(
      ofRequest: isShort,
      inRequest: "\"where\" takes too many steps over all elements; write a simpler filter",
      inElement: "\"where\" takes too many steps over an element; write a simpler filter")
  }
}

extension Limits {
  /// The error for filters that took too many steps: all that the request had left, or all for one element.
  func tooManySteps(ofRequest isOfRequest: Bool, inRequest: String, inElement: String) -> FeedError {
    isOfRequest ? exceeded(\.maxRequestSteps, inRequest) : exceeded(\.maxQuerySteps, inElement)
  }
}
