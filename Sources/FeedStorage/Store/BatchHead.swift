/// What the rows of a batch say of it.
struct BatchHead {
  /// The daemon's revision before the batch.
  let revision: UInt64
  /// The moment at which it is executed, in nanoseconds.
  let moment: UInt64
  /// The row of the limits under which it is executed.
  let limits: Int64
}
