import FeedEngine
import FeedModel
import FeedSystem

extension EventLoop {
  /// Reads from a connection until it has no more, the engine wants no more, or it has had its share of the turn.
  mutating func read(_ slot: ConnectionSlot, isHungUp: Bool) {
    if isHungUp { slot.pointee.flags.insert(.isDeaf) }
    var budget = Self.bytesPerTurn
    while budget > 0, !slot.pointee.flags.contains(.inputEnded), engine.wantsInput(slot.pointee.id) {
      let count: Int
      if slot.pointee.input.count > Self.shortInput {
        count = readLong(slot)
      } else {
        count = readShort(slot)
      }
      if count == 0 { break }
      budget -= count
    }
    if slot.pointee.flags.contains(.inputEnded) {
      // Both directions are over now, if the end was found earlier.
      note(slot)
    } else if !engine.wantsInput(slot.pointee.id) {
      park(slot)
    }
  }

  /// Reads behind a copy of the held bytes and keeps what makes no frame.
  /// - Returns: the bytes read; 0 when there is no more now.
  private mutating func readShort(_ slot: ConnectionSlot) -> Int {
    let held = slot.pointee.input.count
    if held > 0 { scratch.copyMemory(from: slot.pointee.input.bytes) }
    let space = UnsafeMutableRawBufferPointer(rebasing: scratch[held...])
    guard let count = receive(slot, space) else { return 0 }
    let bytes = UnsafeRawBufferPointer(rebasing: scratch[..<(held &+ count)])
    let taken = engine.receive(slot.pointee.id, bytes, now: now)
    slot.pointee.input.replace(UnsafeRawBufferPointer(rebasing: bytes[taken...]))
    // Less than there was room for: the socket is empty, another read would only say so.
    return count < space.count ? 0 : count
  }

  /// Reads to behind the held bytes, at most to the end of the frame they begin.
  private mutating func readLong(_ slot: ConnectionSlot) -> Int {
    let total = engine.bytesNeeded(slot.pointee.id, slot.pointee.input.bytes)
    let space = slot.pointee.input.space(towards: total)
    guard let count = receive(slot, space) else { return 0 }
    slot.pointee.input.didAppend(count)
    let taken = engine.receive(slot.pointee.id, slot.pointee.input.bytes, now: now)
    slot.pointee.input.removeFirst(taken)
    return count
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
    slot.pointee.flags.insert(.inputEnded)
    slot.pointee.input.removeAll()
    engine.endOfInput(slot.pointee.id, now: now)
    note(slot)
    if slot.pointee.flags.contains(.isDeaf) { detach(slot) } else { watch(slot) }
  }

  /// Stops reading until the engine wants input again.
  private mutating func park(_ slot: ConnectionSlot) {
    if !slot.pointee.flags.contains(.isParked) {
      slot.pointee.flags.insert(.isParked)
      parked.append(slot)
      watch(slot)
    }
    // Its answers can reach nobody: dropping them lets the rest of what it sent be taken.
    if slot.pointee.flags.contains(.isDeaf) {
      detach(slot)
      writable.append(slot)
    }
  }

  /// Whether a parked connection can go on.
  var mayResume: Bool { parked.contains { $0.isOpen && engine.wantsInput($0.pointee.id) } }

  /// Takes up again what the engine did not want before and wants now.
  mutating func resumeParked() {
    // Every connection that waits is on the list here.
    engine.takeResumedInput { _ in }
    guard !parked.isEmpty else { return }
    let waiting = parked
    parked.removeAll(keepingCapacity: true)
    for slot in waiting where slot.isOpen && slot.pointee.flags.contains(.isParked) {
      guard engine.wantsInput(slot.pointee.id) else {
        parked.append(slot)
        continue
      }
      let taken = engine.receive(slot.pointee.id, slot.pointee.input.bytes, now: now)
      slot.pointee.input.removeFirst(taken)
      // What was held may have been enough to fill it again.
      guard engine.wantsInput(slot.pointee.id) else {
        parked.append(slot)
        continue
      }
      slot.pointee.flags.remove(.isParked)
      watch(slot)
      if slot.pointee.flags.contains(.isDetached) { readDetached(slot) }
    }
  }

  /// Goes on reading from a connection that the event queue does not report any more, until its end is found.
  private mutating func readDetached(_ slot: ConnectionSlot) {
    read(slot, isHungUp: true)
    guard slot.isOpen, slot.pointee.flags.isDisjoint(with: [.inputEnded, .isParked]) else { return }
    slot.pointee.flags.insert(.isParked)
    parked.append(slot)
  }
}
