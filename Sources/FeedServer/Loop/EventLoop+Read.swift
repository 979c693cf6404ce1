import FeedEngine
import FeedModel
import FeedSystem
import FeedWire

/// The first half of a turn: what came is taken from the sockets. Nothing is executed before all of it is there.
extension EventLoop {
  /// Takes what a connection has sent, up to its share of the turn, if the engine wants it.
  mutating func read(_ slot: ConnectionSlot, isHungUp: Bool) {
    if isHungUp { slot.pointee.flags.formUnion([.isDeaf, .isHungUp]) }
    guard slot.pointee.flags.isDisjoint(with: [.inputEnded, .isTaken]) else { return noteEnd(slot) }
    guard engine.wantsInput(slot.pointee.id) else { return park(slot) }
    if slot.pointee.input.count > Self.shortInput { readLong(slot) } else { readShort(slot) }
    noteEnd(slot)
  }

  /// Both directions are over now, if the end was found earlier.
  private mutating func noteEnd(_ slot: ConnectionSlot) {
    if slot.pointee.flags.contains(.inputEnded) { note(slot) }
  }

  /// Reads into the turn's memory, behind a copy of the held bytes. When that memory is used up, the connection is reported
  /// again in the next turn.
  private mutating func readShort(_ slot: ConnectionSlot) {
    let held = slot.pointee.input.count
    let end = min(scratchUsed &+ Self.bytesPerTurn, Self.turnCapacity)
    let start = scratchUsed &+ held
    guard end - start >= Self.shortInput else { return }
    guard let count = receive(slot, UnsafeMutableRawBufferPointer(rebasing: scratch[start..<end])) else { return }
    if held > 0 {
      UnsafeMutableRawBufferPointer(rebasing: scratch[scratchUsed..<start]).copyMemory(from: slot.pointee.input.bytes)
      slot.pointee.input.removeAll()
    }
    take(slot, scratchUsed..<(start &+ count))
    scratchUsed = start &+ count
  }

  /// Reads to behind the held bytes, at most to the end of the frame they begin.
  private mutating func readLong(_ slot: ConnectionSlot) {
    var budget = Self.bytesPerTurn
    while budget > 0, !holdsFrame(slot) {
      let total = engine.bytesNeeded(slot.pointee.id, slot.pointee.input.bytes)
      let space = slot.pointee.input.space(towards: total)
      guard let count = receive(slot, space) else { break }
      slot.pointee.input.didAppend(count)
      budget -= count
      if count < space.count { break }
    }
    if !slot.pointee.flags.contains(.inputEnded) { take(slot, nil) }
  }

  /// Puts what a connection has on the list of what the turn executes.
  mutating func take(_ slot: ConnectionSlot, _ range: Range<Int>?) {
    slot.pointee.flags.insert(.isTaken)
    inputs.append(TurnInput(slot: slot, range: range))
  }

  /// Whether a whole frame is held: it must be executed before the end of the stream counts.
  private func holdsFrame(_ slot: ConnectionSlot) -> Bool {
    if case .complete = Frame.first(in: slot.pointee.input.bytes, maxFrame: engine.limits.maxFrame) { return true }
    return false
  }

  /// Whether what is held only begins a frame.
  func holdsHalfFrame(_ slot: ConnectionSlot) -> Bool {
    if case .incomplete = Frame.first(in: slot.pointee.input.bytes, maxFrame: engine.limits.maxFrame) { return true }
    return false
  }

  /// One read; nil when there was nothing, for now or for ever.
  private mutating func receive(_ slot: ConnectionSlot, _ space: UnsafeMutableRawBufferPointer) -> Int? {
    switch SocketIO.read(slot.pointee.descriptor, space) {
    case .bytes(let count): return count
    case .wouldBlock: return nil
    case .end:
      endInput(slot)
      return nil
    case .failed(let code):
      // A peer that closed without reading everything: what it sent was read before this is reported.
      log.write(.debug, "\(SystemError(code: code, operation: "read from connection \(slot.pointee.id.rawValue)"))")
      slot.pointee.flags.insert(.isDeaf)
      endInput(slot)
      return nil
    }
  }

  private mutating func endInput(_ slot: ConnectionSlot) {
    // The end is found again when what came before it is done.
    if holdsFrame(slot) { return take(slot, nil) }
    slot.pointee.flags.insert(.inputEnded)
    slot.pointee.input.removeAll()
    engine.endOfInput(slot.pointee.id, now: now)
    note(slot)
    if slot.pointee.flags.contains(.isDeaf) { detach(slot) } else { watch(slot) }
  }
}
