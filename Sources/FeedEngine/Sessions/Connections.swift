import FeedJSON
import FeedModel
import FeedWire

/// The life cycle of a connection: accepting it, taking its input, and closing it from either side.
extension Engine {
  /// Seconds that a closing connection has to read its queued output.
  private static let closeGrace = 10.0

  /// Accepts a connection. A connection that exceeds a limit gets `bye` and is closed after that is written.
  func connect(_ peer: Peer) -> Session {
    let session = sessions.open(peer, now: now)
    let reserve = access.isPrivileged(peer) ? limits.reservedConnections : 0
    if let refusal = sessions.quotas.refusal(of: peer, limits: limits, reserve: reserve) {
      session.phase.isRefused = true
      status.counters.refusedConnections += 1
      close(session, reason: "limit", message: refusal, level: .warning)
    } else {
      sessions.quotas.admit(session)
      status.counters.connections += 1
      status.report(.debug, "\(session.description) opened", about: session.subject)
    }
    return session
  }

  /// Whether more requests of a connection can be taken. If not, it is not read: the client does not read its answers,
  /// or an answer is not complete.
  func wantsInput(_ session: Session) -> Bool { !session.isClosing && !session.input.hasEnded && canWork(session) }

  func canWork(_ session: Session) -> Bool {
    !session.line.isAnswering && session.line.takesMore && session.output.count <= limits.maxQueue
  }

  /// Schedules a paused session if its requests can be taken again.
  func resumeIfPossible(_ session: Session) {
    if session.input.isPaused && wantsInput(session) { sessions.addResumable(session) }
  }

  /// Ends the input of a connection. Received requests are still executed and queued output is written; then the
  /// connection closes.
  func endOfInput(_ session: Session) {
    if session.input.hasEnded { return }
    session.input.hasEnded = true
    session.input.partialSince = nil
    session.input.held.removeAll()
    sessions.longTexts.remove(session)
    if session.line.isDone { session.phase.isClosing = true }
    recount(session)
    outbox.list(session)
  }

  /// Writes an error response and closes the connection, because the rest of the stream cannot be parsed.
  func endStream(of session: Session, reason: String) {
    refuse(makeReply(to: session, id: nil), .invalidRequest(reason: reason))
    close(session, reason: "badFrame", message: "The stream cannot be read on: \(reason).", level: .warning)
  }

  /// Removes a closed connection and its watches. Its stored requests are still executed.
  func disconnect(_ session: Session) {
    endWatches(of: session)
    session.line.cancelAnswers()
    session.phase.isClosing = true
    sessions.longTexts.remove(session)
    let unsent = session.output.count
    session.output.removeAll()
    sessions.close(session)
    outbox.remove(session)
    longAnswers.remove(session)
    if !session.phase.isRefused { sessions.quotas.release(session) }
    status.report(
      .debug,
      "\(session.description) closed after \(counted(session.client.requests, "request")), "
        + "\(counted(unsent, "byte")) unsent",
      about: session.subject)
  }

  /// Closes a connection from this side: `bye` is the last frame, after all queued output.
  func close(_ session: Session, reason: String, message: String, level: LogLevel) {
    if session.isClosing { return }
    status.reportClosing(
      level, "\(session.description) is being closed (\(reason)): \(message)", about: session.subject, now: now)
    session.phase.isClosing = true
    session.phase.closeDeadline = now.adding(seconds: Self.closeGrace)
    session.input.held.removeAll()
    sessions.longTexts.remove(session)
    session.line.work = nil
    if let array = session.line.array { sendAnswers(of: array, to: session) }
    session.line.array = nil
    giveAll(to: session)
    endWatches(of: session)
    let start = answers.bytes.count
    answers.bytes.appendByeFrame(reason: reason, message: message)
    queue(session, answers, from: start)
  }

  /// Ends all watches of a connection. Deltas that were not given to them yet are discarded.
  func endWatches(of session: Session) {
    for watch in session.watches { remove(watch) }
    session.watches = SessionWatches()
  }

  /// Queues `bye` for all connections. Each closes after it has read its queued output.
  func shutDown(reason: String, message: String) {
    for session in sessions.all { close(session, reason: reason, message: message, level: .debug) }
  }

  // MARK: Quotas

  /// Charges the user of a session for the memory of the session, if that changed. O(1).
  @inline(__always) func recount(_ session: Session) {
    let holding = session.memory
    if (holding != session.charged || session.output.hasDues) && !session.phase.isRefused {
      sessions.quotas.charge(session, holding, limit: limits.maxQueuePerUser)
    }
  }

  /// Charges the users for snapshots, whose memory changes with the feeds. O(1) if it did not change; otherwise O(connections).
  func chargeSnapshots() {
    if sessions.snapshots.bytes == sessions.chargedSnapshots { return }
    sessions.chargedSnapshots = sessions.snapshots.bytes
    for session in sessions.all { recount(session) }
  }

  /// Changes the charge for requests of a connection, also if that is closed already.
  func charge(_ bytes: Int, forRequestsOf handle: SessionHandle) {
    guard let session = sessions[handle] else {
      return sessions.quotas.charge(bytes, leftBy: handle, limit: limits.maxQueuePerUser)
    }
    session.line.charge(bytes)
    recount(session)
  }

  /// Discards the output of watches of users over their quota, which catch up later. If that is not enough, closes the largest
  /// connections until the rest is within the quota. One that is being closed already, and still holds most, is not waited for:
  /// its output is discarded.
  ///
  /// Requests that were taken are executed nevertheless, so they are no reason to close their connection.
  func closeOverQuota() {
    if !sessions.quotas.hasOverLimit { return }
    for uid in sessions.quotas.takeOverLimit() {
      discardWatchOutput(of: uid)
      while sessions.quotas.bytes(of: uid) > limits.maxQueuePerUser, let session = largestHolder(of: uid) {
        if session.isClosing {
          session.output.removeAll()
          outbox.list(session)
        } else {
          dropPending(of: session)
          close(session, reason: "quota", message: excess(of: uid), level: .warning)
        }
        recount(session)
      }
    }
  }

  /// Ends the watches and answers of a session and discards its queued output, except the rest of a frame that its peer has
  /// begun to read.
  func dropPending(of session: Session) {
    endWatches(of: session)
    session.line.cancelAnswers()
    session.output.dropWholeFrames()
  }

  /// The session of a user whose closing frees most, except those that are being closed and have no output; nil if no closing
  /// frees more than a small part of the quota. O(connections).
  private func largestHolder(of uid: UInt32) -> Session? {
    var largest: Session?
    let least = limits.maxQueuePerUser / Self.smallPart
    for session in sessions.all where session.peer.uid == uid && session.freeable > largest?.freeable ?? least {
      if !session.isClosing || session.output.count > 0 { largest = session }
    }
    return largest
  }

  /// The part of a quota that is not worth a connection.
  private static let smallPart = 4096

  private func excess(of uid: UInt32) -> String {
    "The connections of uid \(uid) hold more than maxQueuePerUser (\(grouped(limits.maxQueuePerUser))) bytes of unread "
      + "output, incomplete frames and requests under way; read faster, watch or ask for less, or complete frames."
  }
}
