import FeedChange

/// The change of one operation, composed from its steps.
///
/// Invariant: `stepCount` is 0 exactly if the operation has no steps. Only steps after the first go through the
/// accumulator.
struct Operation {
  /// The change so far; complete after `finish`. Its memory is reused.
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

  /// Adds a step, in the coordinates after the previous step. Leaves a change in `step` whose memory can be reused.
  @inline(__always)
  mutating func add(_ step: inout Change) {
    if step.isEmpty { return }
    stepCount &+= 1
    if stepCount == 1 { return swap(&step, &result) }
    if stepCount == 2 { steps.add(result) }
    steps.add(step)
  }

  /// The composed steps if there are several; nil if `result` is already complete.
  mutating func composedSteps() -> Change? {
    stepCount > 1 ? steps.finish() : nil
  }

  /// Discards the steps of an operation that was rolled back.
  mutating func abandon() {
    result.removeAll(keepingCapacity: true)
    _ = steps.finish()
    stepCount = 0
  }
}

/// The animation hints of the operations of the open commit (Protocol/README.md, "Animation").
///
/// Hints are numbered from 1. If several apply to one feed, the last one, with the largest number, is used.
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
