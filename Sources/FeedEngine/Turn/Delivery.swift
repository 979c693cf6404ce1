import FeedModel

/// Writes output to connections, and closes finished connections.
struct Delivery: ~Copyable {
  private let engine: Engine
  /// Connections that accept bytes again.
  private var writable: [ConnectionID] = []
  /// Connections that may have to be closed at the end of the turn.
  private var ending: [SessionHandle] = []
  private let slices: UnsafeMutableBufferPointer<UnsafeRawBufferPointer>

  /// The maximum number of slices in one write.
  private static let slicesPerWrite = 1024

  init(_ engine: Engine) {
    self.engine = engine
    slices = .allocate(capacity: Self.slicesPerWrite)
    slices.initialize(repeating: UnsafeRawBufferPointer(start: nil, count: 0))
  }

  deinit { slices.deallocate() }

  /// Records that a connection accepts bytes again.
  mutating func noteWritable(_ id: ConnectionID) { writable.append(id) }

  /// Updates the events of a connection that the link reports.
  func updateWatch(_ session: Session, _ link: inout some Link & ~Copyable) {
    let input = session.input.isPaused || session.input.hasEnded || session.isClosing
    link.watch(session.id, reading: !input, writing: session.output.isBlocked)
  }

  /// Writes to connections that accept bytes again, then to all connections with new output, once each.
  mutating func write(_ link: inout some Link & ~Copyable) {
    for id in writable {
      guard let session = engine.sessions[id] else { continue }
      session.output.isBlocked = false
      flush(session, &link)
      engine.outbox.list(session)
    }
    writable.removeAll(keepingCapacity: true)
    engine.outbox.forEach { flush($0, &link) }
    engine.finishWrites()
  }

  /// Writes to one connection until all output is written or it accepts no more.
  private mutating func flush(_ session: Session, _ link: inout some Link & ~Copyable) {
    while !session.output.isBlocked && !session.input.isDeaf {
      let count = session.output.gather(into: slices)
      if count == 0 { break }
      var offered = 0
      for index in 0..<count { offered &+= slices[index].count }
      switch link.write(session.id, UnsafeBufferPointer(rebasing: slices[..<count])) {
      case .bytes(let written):
        engine.didWrite(session, written)
        if written < offered { session.output.isBlocked = true }
      case .wouldBlock:
        engine.didWrite(session, 0)
        session.output.isBlocked = true
      case .failed:
        session.input.isDeaf = true
        engine.stopAnswering(session)
      }
    }
    if session.input.isDeaf {
      session.output.isBlocked = false
      engine.discardOutput(of: session)
    }
    if session.isClosing {
      // Discards an incomplete frame, which may never be completed, before the peer has read its last frame.
      session.input.held.removeAll()
      if session.output.count == 0 { note(session) }
    }
    updateWatch(session, &link)
  }

  /// Lists a connection that may be finished.
  mutating func note(_ session: Session) {
    if session.input.isNoted { return }
    session.input.isNoted = true
    ending.append(session.handle)
  }

  /// Closes the finished connections. Returns whether there were any.
  mutating func closeFinished(_ link: inout some Link & ~Copyable) -> Bool {
    var hasClosed = false
    for handle in ending {
      guard let session = engine.sessions[handle] else { continue }
      session.input.isNoted = false
      let isGone = session.input.hasEnded && session.input.isDeaf
      guard isGone || session.isClosing && session.output.count == 0 else { continue }
      close(session, &link)
      hasClosed = true
    }
    ending.removeAll(keepingCapacity: true)
    return hasClosed
  }

  mutating func close(_ session: Session, _ link: inout some Link & ~Copyable) {
    let id = session.id
    engine.disconnect(session)
    link.close(id)
  }
}
