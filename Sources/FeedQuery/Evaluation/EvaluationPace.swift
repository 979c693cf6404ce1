/// Lets a long evaluation stop now and then, so that its thread can do other work.
///
///     let pace = EvaluationPace(every: 1000) { serveOthers(); return !isCancelled }
///     path.evaluate(root, steps: &steps, pace: pace) { node in … }
///
/// An evaluation holds only a part of its steps; the rest is here. When the part is used up, the evaluation stops and takes the
/// next part. Without a pace this costs nothing.
public final class EvaluationPace {
  /// The steps between two stops.
  private let interval: Int
  private let stop: () -> Bool
  /// The steps that the evaluation has not taken yet.
  private(set) var reserve = 0
  /// The work outside of steps since the last stop.
  private var spent = 0
  /// Whether the evaluation ends as if its steps had run out.
  private(set) var isCancelled = false

  /// - Parameters:
  ///   - interval: the steps between two stops.
  ///   - stop: called at each stop. Returns whether the evaluation goes on; otherwise its results are invalid.
  public init(every interval: Int, stop: @escaping () -> Bool) {
    self.interval = interval
    self.stop = stop
  }

  /// Takes over the steps of an evaluation, and returns its first part.
  func begin(steps: Int) -> Int {
    let part = min(steps, interval)
    reserve = steps &- part
    return part
  }

  /// Stops, and returns the next part of the steps for an evaluation that has `steps` left, fewer than none. The result is
  /// below zero if there are no steps left.
  func refill(_ steps: Int) -> Int {
    rest()
    let part = isCancelled ? 0 : min(reserve, interval &- steps)
    reserve = isCancelled ? 0 : reserve &- part
    return steps &+ part
  }

  /// Counts work that is not charged step by step, and stops if enough was done.
  func spend(_ work: Int = 1) {
    spent &+= work
    if spent >= interval { rest() }
  }

  private func rest() {
    spent = 0
    if !isCancelled && !stop() { isCancelled = true }
  }
}
