import FeedModel

/// What is to be written, to whom, and what becomes of what a socket did not take.
extension Engine {
  /// Queues everything of `source` from `start` on, behind what was made for the connection's watches before.
  @inline(__always) func queue(_ session: Session, _ source: TurnBuffer, from start: Int) {
    giveAll(to: session)
    session.output.append(source, from: start, to: source.bytes.count)
    markDirty(session)
  }

  func markDirty(_ session: Session) {
    if session.isDirty { return }
    session.isDirty = true
    dirty.append(session)
  }

  /// Names the connections that have something to write or to close for, each once.
  public func takePendingOutput(_ body: (ConnectionID) -> Void) {
    for session in dirty { body(session.id) }
  }

  /// Fills `slices` with the bytes that wait for a connection, in order, and returns how many slices were filled. They
  /// are valid until the next call of anything but `output` and `didWrite`.
  public func output(of id: ConnectionID, into slices: UnsafeMutableBufferPointer<UnsafeRawBufferPointer>) -> Int {
    session(id)?.output.gather(into: slices) ?? 0
  }

  /// The socket took `count` bytes. Fewer than were offered means that it is full.
  public func didWrite(_ id: ConnectionID, _ count: Int) {
    guard let session = session(id) else { return }
    session.output.consume(count)
    if session.counted > 0 { recount(session) }
    counters.bytesOut &+= UInt64(count)
  }

  /// Ends the turn's writes: what sockets did not take is kept, the turn's memory is reused.
  public func finishWrites() {
    for session in dirty {
      session.isDirty = false
      session.output.keepRest()
      session.isBlocked = session.output.backlog > 0
      if !session.isBlocked { watches.schedule.release(session.id, now: now) }
      recount(session)
      resumeIfPossible(session)
    }
    dirty.removeAll(keepingCapacity: true)
    answers.recycle()
    watches.recycle()
  }

  /// A connection that was found full has taken everything: it may be sent more.
  public func didDrain(_ id: ConnectionID) {
    guard let session = session(id) else { return }
    markDirty(session)
  }

  /// Whether everything was written and the connection is to be closed now.
  public func shouldClose(_ id: ConnectionID) -> Bool {
    guard let session = session(id) else { return true }
    return session.isClosing && session.output.count == 0
  }

  /// Whether bytes wait that the socket did not take; it should be written again when it is writable.
  public func hasOutput(_ id: ConnectionID) -> Bool {
    session(id).map { $0.output.count > 0 } ?? false
  }

  /// Offers input again to a session that refused it, once it has room.
  func resumeIfPossible(_ session: Session) {
    guard session.isPaused, wantsInput(session.id) else { return }
    session.isPaused = false
    resumed.append(session.id)
  }

  /// Names the connections whose buffered input should be handed to `receive` again, even if nothing new arrived.
  public func takeResumedInput(_ body: (ConnectionID) -> Void) {
    if resumed.isEmpty { return }
    let ids = resumed
    resumed.removeAll(keepingCapacity: true)
    for id in ids { body(id) }
  }
}
