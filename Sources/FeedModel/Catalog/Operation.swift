import FeedChange

/// The change of one operation, composed of its steps.
///
/// Invariant: `stepCount` is 0 exactly if the operation has no steps; only steps after the first go through the accumulator.
struct Operation {
  /// The change so far, complete after `finish`. Its memory is used again.
  var result = Change()
  private var steps = ChangeAccumulator()
  private(set) var stepCount = 0

  var isEmpty: Bool { result.isEmpty }

  /// Starts an operation.
  mutating func begin() {
    assert(steps.isEmpty, "the operation before was not finished")
    result.removeAll(keepingCapacity: true)
    stepCount = 0
  }

  /// Adds a step, in the coordinates after the step before. Leaves a change in `step` whose memory can be used again.
  @inline(__always)
  mutating func add(_ step: inout Change) {
    if step.isEmpty { return }
    stepCount &+= 1
    if stepCount == 1 { return swap(&step, &result) }
    if stepCount == 2 { steps.add(result) }
    steps.add(step)
  }

  /// The composed steps if there are several; nil if `result` is complete already.
  mutating func composedSteps() -> Change? {
    stepCount > 1 ? steps.finish() : nil
  }

  /// Discards the steps: the operation failed and was undone.
  mutating func abandon() {
    result.removeAll(keepingCapacity: true)
    _ = steps.finish()
    stepCount = 0
  }
}

/// The hints that operations of the commit under way carry for those who show its changes.
///
/// Hints are numbered from 1 on; of several for one feed the latest counts, which has the largest number.
struct Hints {
  private var texts: [[UInt8]] = []

  var isEmpty: Bool { texts.isEmpty }

  /// Adds the hint of an operation. Returns its number.
  mutating func add(_ text: [UInt8]) -> Int {
    texts.append(text)
    return texts.count
  }

  /// The hint with a number; nil for 0.
  subscript(number: Int) -> [UInt8]? {
    assert(number >= 0 && number <= texts.count, "there is no hint \(number)")
    return number > 0 ? texts[number - 1] : nil
  }

  mutating func removeAll() {
    if !texts.isEmpty { texts.removeAll() }
  }
}
