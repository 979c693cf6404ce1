import FeedModel

/// The stack on which one query at a time evaluates its path, in slices of the turns.
///
/// The work reads only what its query holds: no feed. It never runs at the same time as the turn. Without a ``SliceRunner`` it
/// runs at once.
///
/// Invariant: work is under way exactly if there is an owner.
final class QueryStack {
  private let runner: (any SliceRunner)?
  /// The evaluation whose work has begun and not ended.
  private var owner: QueryEvaluation?
  /// Whether an evaluation has begun in this turn.
  private var hasBegun = false
  /// Whether the work shall end, because nobody wants its result.
  private var isCancelled = false

  init(_ runner: (any SliceRunner)? = nil) {
    self.runner = runner
  }

  /// Whether no work is under way.
  var isIdle: Bool { owner == nil }

  /// Whether also short evaluations take several turns.
  var isEager: Bool { runner?.isEager ?? false }

  /// Begins the slice of a turn.
  func beginTurn() {
    runner?.beginSlice()
    hasBegun = false
  }

  /// Whether an evaluation can begin now. At least one begins in a turn: otherwise a slow turn would repeat itself.
  var canBegin: Bool {
    guard let runner else { return true }
    return owner == nil && (!hasBegun || !runner.isSliceOver)
  }

  /// Whether the work of this evaluation is under way.
  func isOwned(by evaluation: QueryEvaluation) -> Bool { owner === evaluation }

  /// Whether work of this evaluation can be done now.
  func isFree(for evaluation: QueryEvaluation) -> Bool { isOwned(by: evaluation) || canBegin }

  /// Does the work of an evaluation, or another slice of it. Returns whether it is done.
  ///
  /// - Parameter work: looks at ``mayGoOn()`` now and then, and ends if that is false.
  func run(_ evaluation: QueryEvaluation, _ work: @escaping () -> Void) -> Bool {
    guard let runner else {
      work()
      return true
    }
    assert(isFree(for: evaluation), "another query is evaluated")
    let isNew = owner == nil
    if isNew { hasBegun = true }
    owner = evaluation
    guard isNew ? runner.run(work) : runner.resume() else { return false }
    owner = nil
    return true
  }

  /// Stops the work until another turn, if the slice of this one is used up. Returns false if it was cancelled meanwhile.
  func mayGoOn() -> Bool {
    guard let runner, owner != nil else { return true }
    if !isCancelled && runner.isSliceOver { runner.suspend() }
    return !isCancelled
  }

  /// Ends the work of an evaluation, if it is under way.
  func cancel(_ evaluation: QueryEvaluation) {
    if let owner, owner === evaluation { cancel() }
  }

  /// Ends all work and the stack.
  func finish() {
    cancel()
    runner?.end()
  }

  private func cancel() {
    guard owner != nil, let runner else { return }
    isCancelled = true
    while !runner.resume() {}
    isCancelled = false
    owner = nil
  }
}
