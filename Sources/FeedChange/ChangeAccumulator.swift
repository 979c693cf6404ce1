/// Composes many changes into one as they come.
///
/// It keeps partial compositions in order of arrival, each at least twice as large as the next, so every entry takes part in
/// O(log n) compositions however many changes are added, and a large change is not copied for each small one after it.
public struct ChangeAccumulator: Sendable {
  private var parts: [Change] = []

  /// An accumulator to which nothing was added: its composition is the empty change.
  public init() {}

  /// True only when the composition is empty; when false it may still turn out to be.
  public var isEmpty: Bool { parts.isEmpty }

  /// An upper bound for the size of the composition, for limits. O(log n).
  public var size: Int { parts.reduce(0) { $0 + $1.size } }

  /// Adds a change whose before-coordinates are the after-coordinates of the one added last.
  ///
  /// Amortised O(log n) for each entry of `change`.
  public mutating func add(_ change: Change) {
    if change.isEmpty { return }
    var last = change
    while let previous = parts.last, previous.size < 2 * last.size {
      parts.removeLast()
      last = compose(previous, last)
    }
    if !last.isEmpty { parts.append(last) }
  }

  /// The composition of everything added since the start or the last `finish()`; more may be added to it. O(size).
  public mutating func composed() -> Change {
    guard var result = parts.popLast() else { return .empty }
    while let previous = parts.popLast() { result = compose(previous, result) }
    if !result.isEmpty { parts.append(result) }
    return result
  }

  /// The composition of everything added since the start or the last `finish()`, and starts over. O(size).
  public mutating func finish() -> Change {
    let result = composed()
    parts.removeAll(keepingCapacity: true)
    return result
  }
}
