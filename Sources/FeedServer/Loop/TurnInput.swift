/// Bytes of one connection that a turn executes.
struct TurnInput {
  let slot: ConnectionSlot
  /// Where in the turn's memory they lie; nil: where the connection keeps the beginning of its frame.
  let range: Range<Int>?
}
