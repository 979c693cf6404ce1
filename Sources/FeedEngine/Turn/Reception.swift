import FeedModel
import FeedWire

/// Reads input of connections into the memory of the turn, and lets it be decoded.
///
/// A turn takes a bounded part of the input. Connections with more wait in a queue in which users take turns, so that nobody
/// waits for the many connections of somebody else. A connection whose requests cannot be taken is paused: the link does not
/// report it until the client has read its answers.
///
/// Invariant: the intake is empty between turns. A session is in the queue once, exactly if it says so.
struct Reception: ~Copyable {
  private let engine: Engine
  private var intake = Intake()
  /// The connections whose input can be taken.
  private var queue = UserQueue<Session>()
  /// Whether no more requests are taken, because the daemon is shutting down.
  var isDraining = false
  /// Whether the last turn had input to decode.
  private(set) var hadInput = false

  init(_ engine: Engine) { self.engine = engine }

  /// Whether there is input for the next turn.
  var hasWork: Bool { !queue.isEmpty }

  /// Whether requests of a connection can be taken now.
  private func canDecode(_ session: Session) -> Bool { !isDraining && engine.wantsInput(session) }

  /// Takes input of a connection that can be read. If others wait, or the turn has no room, it waits for its share.
  mutating func read(
    _ session: Session, hungUp: Bool, _ link: inout some Link & ~Copyable, _ delivery: inout Delivery
  ) {
    if hungUp { hangUp(session, &delivery) }
    if session.input.isInTurn { return }
    if queue.isEmpty && intake.hasRoom { take(session, &link, &delivery) } else { enqueue(session) }
  }

  private mutating func enqueue(_ session: Session) {
    if session.input.isQueued { return }
    session.input.isQueued = true
    _ = queue.append(session, of: session.peer.uid)
  }

  /// Takes input of connections that wait, as far as the turn has room.
  mutating func takeAll(_ link: inout some Link & ~Copyable, _ delivery: inout Delivery) {
    while intake.hasRoom, let session = queue.takeFirst() {
      session.input.isQueued = false
      // The connection may have been closed while it waited.
      if engine.sessions[session.handle] === session { take(session, &link, &delivery) }
    }
  }

  private mutating func take(_ session: Session, _ link: inout some Link & ~Copyable, _ delivery: inout Delivery) {
    if session.input.hasEnded { return delivery.note(session) }
    guard canDecode(session), !session.input.isPaused else { return pause(session, &link, &delivery) }
    guard case .incomplete = Frame.first(in: session.input.held.bytes, maxFrame: engine.limits.maxFrame) else {
      return intake.addHeld(session)
    }
    if intake.fits(held: session.input.held.count) {
      readShort(session, &link, &delivery)
    } else {
      readLong(session, &link, &delivery)
    }
  }

  /// Marks a peer that stopped reading. Its unfinished answers are cancelled; received requests that change feeds are
  /// still executed.
  func hangUp(_ session: Session, _ delivery: inout Delivery) {
    if session.input.isDeaf { return }
    session.input.isDeaf = true
    engine.stopAnswering(session)
    delivery.noteWritable(session.id)
  }

  /// Reads into the turn's memory.
  private mutating func readShort(
    _ session: Session, _ link: inout some Link & ~Copyable, _ delivery: inout Delivery
  ) {
    let held = session.input.held.bytes
    let space = intake.space(behind: held.count, isCheap: isCheap)
    switch link.read(session.id, into: space) {
    case .bytes(let count) where count == space.count && beginsLongFrame(held.isEmpty ? .init(space) : held):
      intake.didRead(count + readMore(session, behind: count, &link, &delivery), of: session)
    case .bytes(let count): intake.didRead(count, of: session)
    case .wouldBlock: updateReading(session, &link, &delivery)
    case .end: endInput(session, isDeaf: false, &link, &delivery)
    case .failed: endInput(session, isDeaf: true, &link, &delivery)
    }
  }

  /// Whether a turn costs little besides its requests: it writes no log, and to few connections.
  private var isCheap: Bool { !engine.isDurable && engine.outbox.receivers < Self.manyReceivers }
  private static let manyReceivers = 4

  private func beginsLongFrame(_ bytes: UnsafeRawBufferPointer) -> Bool {
    switch Frame.first(in: bytes, maxFrame: engine.limits.maxFrame) {
    case .complete(let payload): payload.count >= Intake.longFrame
    case .incomplete(let total): total ?? 0 >= Intake.longFrame
    case .badLength: false
    }
  }

  /// Reads on into the rest of the turn's memory. Returns the number of bytes.
  private func readMore(
    _ session: Session, behind count: Int, _ link: inout some Link & ~Copyable, _ delivery: inout Delivery
  ) -> Int {
    guard let space = intake.rest(behind: session.input.held.count + count) else { return 0 }
    switch link.read(session.id, into: space) {
    case .bytes(let more): return more
    case .failed: hangUp(session, &delivery)
    // The next read finds the end again.
    case .wouldBlock, .end: break
    }
    return 0
  }

  /// Reads into the held buffer, at most to the end of the frame at its beginning.
  private mutating func readLong(
    _ session: Session, _ link: inout some Link & ~Copyable, _ delivery: inout Delivery
  ) {
    let most = intake.room
    var budget = most
    reading: while budget > 0,
      case .incomplete(let total) = Frame.first(in: session.input.held.bytes, maxFrame: engine.limits.maxFrame)
    {
      let free = session.input.held.space(towards: total ?? 0)
      let space = UnsafeMutableRawBufferPointer(rebasing: free.prefix(budget))
      switch link.read(session.id, into: space) {
      case .bytes(let count):
        session.input.held.didAppend(count)
        budget -= count
        if count < space.count { break reading }
      case .wouldBlock: break reading
      case .end: return endInput(session, isDeaf: false, &link, &delivery)
      case .failed: return endInput(session, isDeaf: true, &link, &delivery)
      }
    }
    intake.addHeld(session, read: most - budget)
  }

  /// Ends the input of a connection, which holds no whole frame: held frames are executed before it is read.
  private mutating func endInput(
    _ session: Session, isDeaf: Bool, _ link: inout some Link & ~Copyable, _ delivery: inout Delivery
  ) {
    if isDeaf { hangUp(session, &delivery) }
    engine.endOfInput(session)
    delivery.note(session)
    delivery.updateWatch(session, &link)
  }

  /// Stops reading from a connection until its requests can be taken again.
  private mutating func pause(_ session: Session, _ link: inout some Link & ~Copyable, _ delivery: inout Delivery) {
    session.input.isPaused = true
    if isDraining { engine.sessions.longTexts.remove(session) }
    delivery.updateWatch(session, &link)
    // A peer that stopped reading gets no answers. Discarding them unblocks the rest of its received requests.
    if session.input.isDeaf { delivery.noteWritable(session.id) }
  }

  /// Resumes paused connections whose requests can be taken now.
  mutating func resume(_ link: inout some Link & ~Copyable, _ delivery: inout Delivery) {
    if !engine.sessions.hasResumable { return }
    for handle in engine.sessions.takeResumable() {
      guard let session = engine.sessions[handle], session.input.isPaused else { continue }
      session.input.isPaused = false
      if canDecode(session), session.input.held.count > 0 {
        enqueue(session)
      } else {
        updateReading(session, &link, &delivery)
      }
    }
  }

  /// Pauses a connection whose requests cannot be taken; otherwise lets the link report it again.
  private mutating func updateReading(
    _ session: Session, _ link: inout some Link & ~Copyable, _ delivery: inout Delivery
  ) {
    if session.input.hasEnded { return }
    if session.input.isPaused || !canDecode(session) {
      pause(session, &link, &delivery)
    } else {
      delivery.updateWatch(session, &link)
    }
  }

  /// Decodes the input of this turn, and keeps the rest.
  mutating func decodeAll(
    _ link: inout some Link & ~Copyable, _ delivery: inout Delivery, _ dispatcher: inout Dispatcher
  ) {
    for piece in intake.pieces {
      guard let session = engine.sessions[piece.session] else { continue }
      session.input.isInTurn = false
      let count = dispatcher.decode(intake.bytes(of: piece, session), of: session)
      intake.keepRest(of: piece, session, decoded: count)
      if session.isClosing { session.input.held.removeAll() }
      engine.recount(session)
      updateReading(session, &link, &delivery)
    }
    hadInput = !intake.pieces.isEmpty
    intake.removeAll()
  }
}
