import FeedEngine
import FeedModel
import FeedSystem

/// Connections whose input the engine does not want for now.
extension EventLoop {
  /// Stops reading until the engine wants input again.
  mutating func park(_ slot: ConnectionSlot) {
    if !slot.pointee.flags.contains(.isParked) {
      slot.pointee.flags.insert(.isParked)
      parked.append(slot)
      watch(slot)
    }
    // The event queue would report it again and again.
    if slot.pointee.flags.contains(.isHungUp) { detach(slot) }
    // Its answers can reach nobody: dropping them lets the rest of what it sent be taken.
    if slot.pointee.flags.contains(.isDeaf) { writable.append(slot) }
  }

  /// Whether a parked connection can go on.
  var mayResume: Bool { parked.contains { $0.isOpen && engine.wantsInput($0.pointee.id) } }

  /// Takes up again what the engine did not want before and wants now.
  mutating func resumeParked() {
    var left: [ConnectionSlot] = []
    engine.takeResumedInput { id in
      if let slot = connections[id] { left.append(slot) }
    }
    for slot in left where slot.isOpen && slot.pointee.flags.isDisjoint(with: [.isParked, .isTaken, .inputEnded]) {
      if slot.pointee.input.count > 0 { take(slot, nil) }
    }
    guard !parked.isEmpty else { return }
    let waiting = parked
    parked.removeAll(keepingCapacity: true)
    for slot in waiting where slot.isOpen && slot.pointee.flags.contains(.isParked) {
      if engine.wantsInput(slot.pointee.id) { resume(slot) } else { parked.append(slot) }
    }
  }

  private mutating func resume(_ slot: ConnectionSlot) {
    slot.pointee.flags.remove(.isParked)
    let isDetached = slot.pointee.flags.contains(.isDetached)
    // Half a frame of a peer that is gone does not become a whole one by waiting: its end is looked for.
    if slot.pointee.input.count > 0 && !(isDetached && holdsHalfFrame(slot)) {
      take(slot, nil)
    } else {
      if isDetached { read(slot, isHungUp: true) }
      settle(slot)
    }
  }

  /// Parks a connection that cannot take more, and has the others reported again.
  mutating func settle(_ slot: ConnectionSlot) {
    guard slot.pointee.flags.isDisjoint(with: [.inputEnded, .isTaken]) else { return }
    if !engine.wantsInput(slot.pointee.id) { return park(slot) }
    // The event queue does not report it any more: its end is looked for turn by turn.
    if slot.pointee.flags.contains(.isDetached) { return park(slot) }
    watch(slot)
  }
}
