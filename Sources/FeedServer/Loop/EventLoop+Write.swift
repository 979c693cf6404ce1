import FeedEngine
import FeedSystem

extension EventLoop {
  /// Writes what the turn made: first to sockets that had been full, then to everybody who has something new.
  mutating func writeAll() {
    for slot in writable where slot.isOpen {
      flush(slot)
      if !slot.pointee.flags.contains(.isBlocked) { engine.didDrain(slot.pointee.id) }
    }
    writable.removeAll(keepingCapacity: true)
    engine.takePendingOutput { id in
      if let slot = connections[id] { flush(slot) }
    }
    engine.finishWrites()
  }

  /// Writes to one connection until it has everything or its socket is full.
  private mutating func flush(_ slot: ConnectionSlot) {
    let id = slot.pointee.id
    if slot.pointee.flags.contains(.isDeaf) { drop(slot) }
    while !slot.pointee.flags.contains(.isBlocked) {
      let count = engine.output(of: id, into: slices)
      guard count > 0 else { break }
      var offered = 0
      for index in 0..<count { offered &+= slices[index].count }
      switch writer.write(UnsafeBufferPointer(rebasing: slices[..<count]), to: slot.pointee.descriptor) {
      case .bytes(let written):
        engine.didWrite(id, written)
        if written < offered { block(slot) }
      case .wouldBlock, .end:
        engine.didWrite(id, 0)
        block(slot)
      case .failed(let code):
        log.write(.debug, "\(SystemError(code: code, operation: "write to connection \(id.rawValue)"))")
        slot.pointee.flags.insert(.isDeaf)
        drop(slot)
      }
    }
    watch(slot)
    // What the peer began and is not let finish must not stay until it has read its last frame.
    if slot.pointee.input.count > 0, engine.ignoresInput(id) { slot.pointee.input.removeAll() }
    if engine.shouldClose(id) { note(slot) }
  }

  private func block(_ slot: ConnectionSlot) { slot.pointee.flags.insert(.isBlocked) }

  /// Lets what waits for a peer that reads no more go nowhere.
  private func drop(_ slot: ConnectionSlot) {
    slot.pointee.flags.remove(.isBlocked)
    while true {
      let count = engine.output(of: slot.pointee.id, into: slices)
      guard count > 0 else { return }
      var offered = 0
      for index in 0..<count { offered &+= slices[index].count }
      engine.didWrite(slot.pointee.id, offered)
    }
  }
}
