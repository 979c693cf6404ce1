import FeedEngine
import FeedJSON
import FeedModel
import FeedSystem
import FeedWire

extension EventLoop {
  /// Connections accepted in a turn.
  static let acceptedPerTurn = 64
  /// Nanoseconds without accepting when not even the reserve helps.
  private static let pause: UInt64 = 200_000_000

  /// Takes connections that wait, so many at most.
  mutating func acceptConnections(atMost limit: Int = acceptedPerTurn) {
    var left = limit
    while left > 0, acceptOne() { left -= 1 }
  }

  /// Takes one connection; false when there is no further one now.
  private mutating func acceptOne() -> Bool {
    guard let outcome = listener?.accept() else { return false }
    switch outcome {
    case .connection(let descriptor):
      open(descriptor)
      return true
    case .retry: return true
    case .none: return false
    case .exhausted(let error): return refuseOne(error)
    case .failed(let error):
      log.write(.error, "\(error)")
      pauseAcceptance()
      return false
    }
  }

  private mutating func open(_ descriptor: Int32) {
    // A peer that is gone already has credentials all the same; without them it is nobody.
    let peer = (try? PeerCredentials(of: descriptor)) ?? PeerCredentials(pid: 0, uid: .max, gid: .max, groups: [])
    let id = engine.connect(Peer(uid: peer.uid, gid: peer.gid, pid: peer.pid, groups: peer.groups), now: now)
    accepted &+= 1
    let slot = connections.open(descriptor, id)
    do throws(SystemError) {
      try poll.add(descriptor, .readable, token: slot.token)
    } catch {
      log.write(.error, "\(error)")
      close(slot)
    }
  }

  /// Says to the first that waits that there are no descriptors, with the one kept for that: left in the queue it would wake
  /// the loop again and again.
  private mutating func refuseOne(_ error: SystemError) -> Bool {
    reserve.release()
    defer { reserve.take() }
    guard case .connection(let descriptor)? = listener?.accept() else {
      log.write(.error, "\(error); no connection is accepted for a while")
      pauseAcceptance()
      return false
    }
    let message = "feedd has no file descriptors left; try again later, or raise its limit of open files (LimitNOFILE)."
    var farewell = ByteBuffer()
    farewell.appendByeFrame(reason: "descriptors", message: message)
    // A new socket has room for so little; and if not, closing says enough.
    _ = SocketIO.write(descriptor, farewell.bytes)
    SocketIO.close(descriptor)
    turnedAway += 1
    sayTurnedAway(error)
    return true
  }

  /// One line a second at most, however many clients knock.
  private mutating func sayTurnedAway(_ error: SystemError) {
    guard now >= nextRefusalLine else { return }
    log.write(.error, "\(error); \(turnedAway) clients were turned away with \(connections.count) connections open")
    turnedAway = 0
    nextRefusalLine = now.adding(seconds: 1)
  }

  private mutating func pauseAcceptance() {
    acceptanceResumesAt = now.adding(nanoseconds: Self.pause)
    watchListener([])
  }

  mutating func resumeAcceptance() {
    acceptanceResumesAt = nil
    watchListener(.readable)
  }

  private func watchListener(_ interest: EventInterest) {
    guard let descriptor = listener?.descriptor else { return }
    do throws(SystemError) {
      try poll.modify(descriptor, interest, token: Self.listenerToken)
    } catch {
      log.write(.error, "\(error)")
    }
  }
}
