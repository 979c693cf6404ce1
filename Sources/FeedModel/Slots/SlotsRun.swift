/// So many equal passes in a row: the list is periodic from one exhaustion of a type to the next.
struct SlotsRun: Sendable {
  /// What one row of a pass shows.
  struct Emission: Sendable {
    /// The row of the type that is shown in the first pass.
    var first: Int
    var type: Int
    /// How many rows of the type a pass shows: what the index grows by from one pass to the next.
    var step: Int
  }

  /// The row of the list, before fixed rows are inserted, where the first pass begins.
  let start: Int
  let passes: Int
  let emissions: [Emission]

  /// How many rows the passes have, which is never 0.
  var count: Int { passes * emissions.count }
  var end: Int { start + count }

  /// What the row at `offset` of the run shows.
  @inline(__always)
  func item(at offset: Int) -> SlotsItem {
    let (pass, slot) = offset.quotientAndRemainder(dividingBy: emissions.count)
    let emission = emissions[slot]
    return SlotsItem(type: emission.type, index: emission.first + pass * emission.step)
  }
}
