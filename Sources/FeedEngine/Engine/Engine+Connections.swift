import FeedModel
import FeedWire

/// Connections come and go.
extension Engine {
  /// A connection was accepted. Over a limit it is told so with `bye` and closes once that is written.
  public func connect(_ peer: Peer, now: Instant) -> ConnectionID {
    self.now = now
    let id = ConnectionID(rawValue: freeIDs.popLast() ?? sessions.count)
    let session = Session(id: id, peer: peer, connectedAt: now)
    if id.rawValue == sessions.count { sessions.append(session) } else { sessions[id.rawValue] = session }
    if let refusal = refusal(for: peer) {
      session.isRefused = true
      counters.refusedConnections += 1
      close(session, reason: "limit", message: refusal, level: .warning)
    } else {
      connectionCount += 1
      users[peer.uid, default: UserUsage()].connections += 1
      counters.connections += 1
      report(.info, "\(session.description) opened")
    }
    return id
  }

  /// Why a further connection of `peer` is not taken; nil when it is.
  private func refusal(for peer: Peer) -> String? {
    let reserve = access.isPrivileged(peer) ? limits.reservedConnections : 0
    if connectionCount >= limits.maxConnections + reserve {
      return
        "Limit maxConnections (\(limits.maxConnections)) is reached; close a connection, or start feedd with a larger --max-connections."
    }
    if let usage = users[peer.uid], usage.connections >= limits.maxConnectionsPerUser + reserve {
      return
        "Limit maxConnectionsPerUser (\(limits.maxConnectionsPerUser)) is reached; close a connection of this user first."
    }
    return nil
  }

  /// The peer will send nothing more: what is queued is still written, then the connection closes.
  public func endOfInput(_ id: ConnectionID, now: Instant) {
    self.now = now
    guard let session = session(id), !session.inputEnded else { return }
    session.inputEnded = true
    session.partialSince = nil
    session.heldInput = 0
    if session.work == nil && session.batch == nil { session.isClosing = true }
    markDirty(session)
  }

  /// The socket is gone: the connection and its watches are forgotten.
  public func disconnect(_ id: ConnectionID) {
    guard let session = session(id) else { return }
    endWatches(of: session)
    session.work = nil
    session.batch = nil
    sessions[id.rawValue] = nil
    freeIDs.append(id.rawValue)
    dirty.removeAll { $0 === session }
    workingSessions.removeAll { $0 === session }
    if !session.isRefused {
      connectionCount -= 1
      if var usage = users[session.peer.uid] {
        usage.connections -= 1
        usage.holding -= session.counted
        users[session.peer.uid] = usage.connections > 0 ? usage : nil
      }
    }
    // Nothing is swept while nobody is there.
    if sessions.count == freeIDs.count { scanner.releaseMemory(beyond: 1 << 16) }
    report(
      .info, "\(session.description) closed after \(session.requests) requests, \(session.output.count) bytes unsent")
  }

  /// Ends a connection from this side: `bye` is the last frame, after all that is queued.
  func close(_ session: Session, reason: String, message: String, level: EngineEvent.Level) {
    if session.isClosing { return }
    report(level, "\(session.description) is being closed (\(reason)): \(message)")
    session.isClosing = true
    session.closeDeadline = now.adding(seconds: Self.closeGrace)
    session.heldInput = 0
    session.work = nil
    if let batch = session.batch { sendAnswers(of: batch, to: session) }
    session.batch = nil
    giveAll(to: session)
    endWatches(of: session)
    let start = answers.bytes.count
    answers.bytes.appendByeFrame(reason: reason, message: message)
    queue(session, answers, from: start)
  }

  /// Ends all watches of a connection; what was made for them and not given is dropped.
  func endWatches(of session: Session) {
    for watch in session.watches { remove(watch) }
    session.watches = []
  }

  /// Seconds that a closing connection has to read what is queued for it.
  private static let closeGrace = 10.0

  /// Says `bye` to everybody; each connection closes once it has read what is queued.
  public func shutDown(reason: String, message: String, now: Instant) {
    self.now = now
    for case let session? in sessions { close(session, reason: reason, message: message, level: .debug) }
  }
}
