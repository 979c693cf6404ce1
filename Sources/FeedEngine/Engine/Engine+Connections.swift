import FeedModel
import FeedWire

/// Connections come and go.
extension Engine {
  /// A connection was accepted. Over a limit it is told so with `bye` and closes once that is written.
  func connect(_ peer: Peer) -> Session {
    let index = freeIDs.popLast() ?? sessions.count
    generations &+= 1
    let handle = SessionHandle(index: UInt32(index), generation: generations)
    let session = Session(handle: handle, peer: peer, connectedAt: now)
    if index == sessions.count { sessions.append(session) } else { sessions[index] = session }
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
    return session
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

  /// Whether the requests of a connection can be taken now. While false, it is not read from: it does not read its answers, or
  /// one of them is not complete.
  func wantsInput(_ session: Session) -> Bool {
    !session.isClosing && !session.input.hasEnded && canWork(session)
  }

  /// Whether a connection has room for the answers of further requests.
  func canWork(_ session: Session) -> Bool {
    session.work == nil && session.batch == nil && session.line.takesMore && session.output.count <= limits.maxQueue
  }

  /// The peer sends nothing more: what it sent is executed and what is queued is written, then the connection closes.
  func endOfInput(_ session: Session) {
    if session.input.hasEnded { return }
    session.input.hasEnded = true
    session.input.partialSince = nil
    session.input.held.removeAll()
    if session.work == nil && session.batch == nil && session.line.isEmpty { session.isClosing = true }
    recount(session)
    markDirty(session)
  }

  /// The connection is closed: the session and its watches are forgotten. Requests of it that are stored are executed all the
  /// same.
  func disconnect(_ session: Session) {
    endWatches(of: session)
    session.work = nil
    session.batch = nil
    session.isClosing = true
    sessions[Int(session.handle.index)] = nil
    freeIDs.append(Int(session.handle.index))
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
    report(
      .info, "\(session.description) closed after \(session.requests) requests, \(session.output.count) bytes unsent")
  }

  /// Ends a connection from this side: `bye` is the last frame, after all that is queued.
  func close(_ session: Session, reason: String, message: String, level: EngineEvent.Level) {
    if session.isClosing { return }
    report(level, "\(session.description) is being closed (\(reason)): \(message)")
    session.isClosing = true
    session.closeDeadline = now.adding(seconds: Self.closeGrace)
    session.input.held.removeAll()
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
  func shutDown(reason: String, message: String) {
    for case let session? in sessions { close(session, reason: reason, message: message, level: .debug) }
  }
}
