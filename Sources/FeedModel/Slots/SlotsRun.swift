/// A number of equal, consecutive passes. The list is periodic from one exhaustion of a type to the next.
struct SlotsRun: Sendable {
  /// The item of one row of a pass.
  struct Emission: Sendable {
    /// The row of the type that the first pass shows here.
    var first: Int
    var type: Int
    /// The number of rows of the type in a pass, by which the row grows from one pass to the next.
    var step: Int
  }

  /// The first row of the first pass, before fixed rows are inserted.
  let start: Int
  let passes: Int
  let emissions: [Emission]

  /// The number of rows of all passes, never 0.
  var count: Int { passes * emissions.count }
  var end: Int { start + count }

  /// The item at `offset` in the run.
  @inline(__always)
  func item(at offset: Int) -> SlotsItem {
    let (pass, slot) = offset.quotientAndRemainder(dividingBy: emissions.count)
    let emission = emissions[slot]
    return SlotsItem(type: emission.type, index: emission.first + pass * emission.step)
  }
}
