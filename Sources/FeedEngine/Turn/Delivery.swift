import FeedModel

/// Writes output to connections, and closes finished connections.
struct Delivery: ~Copyable {
  private let engine: Engine
  /// Connections that accept bytes again.
  private var writable: [ConnectionID] = []
  /// Connections that may have to be closed at the end of the turn.
  private var ending: [SessionHandle] = []
  private let slices: UnsafeMutableBufferPointer<UnsafeRawBufferPointer>
  /// The bytes that may still be offered in this turn, besides small output.
  private var room = 0
  /// The last connection that was written in its round: the next turn begins with the one after it.
  private var lastWritten = -1

  private static let slicesPerWrite = 1024
  /// The maximum bytes of all writes in one turn.
  private static let turnBudget = 1 << 20
  /// The maximum bytes if they begin with frames for watches: what the input of one turn makes for about 50 watchers. A connection
  /// that takes its deltas at once costs one write a turn, and nothing is kept for it.
  private static let watchBudget = 4 << 20
  /// The maximum bytes for one connection in one turn.
  private static let share = 512 << 10
  /// The watches after which a turn closes no other connection. To end one takes about half a microsecond.
  private static let watchesPerTurn = 4096
  /// A socket holds only a few frames of this size, unless the link makes room.
  private static let longFrame = 16 << 10
  /// Output of this size is offered whatever the budget.
  private static let smallOutput = 16 << 10

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
  ///
  /// A peer that reads on another processor makes room while a write copies, so a write can take as long as all its
  /// bytes. A turn therefore offers a limited number of bytes: connections with long output take turns, by their
  /// numbers. O(n log n + bytes) with n writable connections.
  mutating func write(_ link: inout some Link & ~Copyable) {
    room = Self.turnBudget
    let first = lastWritten
    if writable.count > 1 { writable.sort { $0.rawValue < $1.rawValue } }
    for id in writable where id.rawValue > first { flushAgain(id, &link) }
    for id in writable where id.rawValue <= first { flushAgain(id, &link) }
    writable.removeAll(keepingCapacity: true)
    engine.outbox.forEach { flush($0, &link) }
    engine.finishWrites()
  }

  /// Writes to a connection that accepts bytes again.
  private mutating func flushAgain(_ id: ConnectionID, _ link: inout some Link & ~Copyable) {
    guard let session = engine.sessions[id] else { return }
    session.output.isBlocked = false
    if room > 0 { lastWritten = id.rawValue }
    flush(session, &link)
    engine.outbox.list(session)
  }

  /// Writes to one connection until all output is written, it accepts no more or it has had its share of the turn.
  private mutating func flush(_ session: Session, _ link: inout some Link & ~Copyable) {
    var share = share(of: session.output)
    while !session.output.isBlocked && !session.input.isDeaf {
      var count = session.output.gather(into: slices)
      if count == 0 { break }
      if share <= 0 {
        session.output.isBlocked = true
        break
      }
      let offered = limit(&count, to: share)
      share &-= offered
      room &-= offered
      switch link.write(session.id, UnsafeBufferPointer(rebasing: slices[..<count])) {
      case .bytes(let written):
        engine.didWrite(session, written)
        if written < offered { didBlock(session, &link) }
      case .wouldBlock:
        engine.didWrite(session, 0)
        didBlock(session, &link)
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

  /// Notes that a connection did not accept all that it was offered.
  @inline(never)
  private func didBlock(_ session: Session, _ link: inout some Link & ~Copyable) {
    session.output.isBlocked = true
    if session.output.firstFrame >= Self.longFrame { link.makeRoom(session.id) }
  }

  /// Returns how many of a connection's bytes are offered in this turn; 0 or less if it must wait.
  private func share(of output: borrowing OutputQueue) -> Int {
    if output.count <= Self.smallOutput { return Self.smallOutput }
    return min(Self.share, output.beginsWithWatch ? room &+ Self.watchBudget &- Self.turnBudget : room)
  }

  /// Shortens the slices to `allowed` bytes, at least one. Returns the number of bytes in the slices.
  @inline(__always)
  private func limit(_ count: inout Int, to allowed: Int) -> Int {
    var offered = 0
    for index in 0..<count {
      let length = slices[index].count
      offered &+= length
      guard offered >= allowed else { continue }
      slices[index] = UnsafeRawBufferPointer(rebasing: slices[index].prefix(length &- (offered &- allowed)))
      count = index &+ 1
      return allowed
    }
    return offered
  }

  /// Lists a connection that may be finished.
  mutating func note(_ session: Session) {
    if session.input.isNoted { return }
    session.input.isNoted = true
    ending.append(session.handle)
  }

  /// Whether connections may have to be closed in the next turn.
  var hasEnding: Bool { !ending.isEmpty }

  /// Closes finished connections, all of them unless they have many watches.
  mutating func closeFinished(_ link: inout some Link & ~Copyable) {
    var (seen, watches) = (0, 0)
    while seen < ending.count && watches < Self.watchesPerTurn {
      let handle = ending[seen]
      seen += 1
      guard let session = engine.sessions[handle] else { continue }
      session.input.isNoted = false
      let isGone = session.input.hasEnded && session.input.isDeaf
      guard isGone || session.isClosing && session.output.count == 0 else { continue }
      watches += session.watches.count
      close(session, &link)
    }
    ending.removeFirst(seen)
  }

  mutating func close(_ session: Session, _ link: inout some Link & ~Copyable) {
    let id = session.id
    engine.disconnect(session)
    link.close(id)
  }
}
