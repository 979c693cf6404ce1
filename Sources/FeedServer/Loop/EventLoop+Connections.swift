import FeedEngine
import FeedSystem

extension EventLoop {
  /// Reads of what a peer still sends while it is being closed.
  private static let lastReads = 8

  /// Tells the event queue what is to be reported of a connection, if that changed.
  func watch(_ slot: ConnectionSlot) {
    let flags = slot.pointee.flags
    guard !flags.contains(.isDetached) else { return }
    var interest: EventInterest = []
    if flags.isDisjoint(with: [.isParked, .inputEnded]) { interest.insert(.readable) }
    if flags.contains(.isBlocked) { interest.insert(.writable) }
    guard interest != slot.pointee.interest else { return }
    slot.pointee.interest = interest
    do throws(SystemError) {
      try poll.modify(slot.pointee.descriptor, interest, token: slot.token)
    } catch {
      log.write(.error, "\(error)")
    }
  }

  /// Takes a connection out of the event queue, which reports a hang-up whatever it is asked for.
  func detach(_ slot: ConnectionSlot) {
    guard !slot.pointee.flags.contains(.isDetached) else { return }
    slot.pointee.flags.insert(.isDetached)
    do throws(SystemError) {
      try poll.remove(slot.pointee.descriptor)
    } catch {
      log.write(.error, "\(error)")
    }
  }

  /// Puts a connection on the list of those that may be over.
  mutating func note(_ slot: ConnectionSlot) {
    guard !slot.pointee.flags.contains(.isNoted) else { return }
    slot.pointee.flags.insert(.isNoted)
    noted.append(slot)
  }

  /// Closes what the engine is done with and whose peer is gone.
  mutating func closeFinished() {
    for slot in noted where slot.isOpen {
      slot.pointee.flags.remove(.isNoted)
      let isGone = slot.pointee.flags.isSuperset(of: [.inputEnded, .isDeaf])
      if isGone || engine.shouldClose(slot.pointee.id) { close(slot) }
    }
    noted.removeAll(keepingCapacity: true)
  }

  /// Ends a connection on both sides of the seam.
  mutating func close(_ slot: ConnectionSlot) {
    let descriptor = slot.pointee.descriptor
    if slot.pointee.flags.isDisjoint(with: [.inputEnded, .isDeaf]) { readOff(descriptor) }
    engine.disconnect(slot.pointee.id)
    connections.close(slot)
    SocketIO.close(descriptor)
    if acceptanceResumesAt != nil { resumeAcceptance() }
  }

  /// Takes what came and nobody wants: closing over unread bytes would reset the connection before the peer has read its
  /// last frames to the end.
  private func readOff(_ descriptor: Int32) {
    // The turn's own memory holds what is still to be executed.
    withUnsafeTemporaryAllocation(byteCount: 16 << 10, alignment: 16) { space in
      for _ in 0..<Self.lastReads {
        guard case .bytes = SocketIO.read(descriptor, space) else { return }
      }
    }
  }
}
