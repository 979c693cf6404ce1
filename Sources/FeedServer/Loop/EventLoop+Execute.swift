import FeedEngine
import FeedModel

/// The second half of a turn: what was taken from the sockets is executed.
extension EventLoop {
  /// Executes what the turn has, after storing what of it may change something.
  mutating func executeTurn() {
    if let store { storeTurn(store) }
    for input in inputs {
      input.slot.pointee.flags.remove(.isTaken)
      if input.slot.isOpen { execute(input) }
    }
    inputs.removeAll(keepingCapacity: true)
    scratchUsed = 0
  }

  private mutating func execute(_ input: TurnInput) {
    let slot = input.slot
    let bytes = bytes(of: input)
    let taken = engine.receive(slot.pointee.id, bytes, now: now)
    if input.range == nil {
      slot.pointee.input.removeFirst(taken)
    } else {
      slot.pointee.input.replace(UnsafeRawBufferPointer(rebasing: bytes[taken...]))
    }
    settle(slot)
  }

  /// Where an input lies. Valid until the connection's own buffer changes.
  func bytes(of input: TurnInput) -> UnsafeRawBufferPointer {
    guard let range = input.range else { return input.slot.pointee.input.bytes }
    return UnsafeRawBufferPointer(rebasing: scratch[range])
  }
}
