/// `start:end:step` of an array slice selector (RFC 9535, section 2.3.4).
struct SliceBounds: Equatable, Sendable {
  var start: Int?
  var end: Int?
  var step: Int

  /// The rows that the slice selects from an array of `count` elements, as a first row, a step and a number of rows.
  ///
  /// Bounds are at most 2^53 − 1 in magnitude, so no sum below can overflow.
  func rows(count: Int) -> (first: Int, step: Int, count: Int) {
    func normalized(_ bound: Int) -> Int { bound >= 0 ? bound : count + bound }
    if step > 0 {
      let lower = min(max(normalized(start ?? 0), 0), count)
      let upper = min(max(normalized(end ?? count), 0), count)
      return lower < upper ? (lower, step, (upper - lower - 1) / step + 1) : (0, step, 0)
    }
    guard step < 0 else { return (0, 0, 0) }
    let upper = min(max(normalized(start ?? count - 1), -1), count - 1)
    let lower = min(max(normalized(end ?? -count - 1), -1), count - 1)
    return lower < upper ? (upper, step, (upper - lower - 1) / -step + 1) : (0, step, 0)
  }
}
