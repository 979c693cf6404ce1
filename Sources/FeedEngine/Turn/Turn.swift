import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// When the next turn is due.
public enum NextTurn: Equatable {
  /// At once: work is left.
  case now
  /// At a moment, unless something arrives before.
  case at(Instant)
  /// Only when the link or the log has an event.
  case whenReadable
}

/// The order in which a daemon works: take input, decode, append to the log, execute, publish, write.
///
/// The daemon, tests, benchmarks and simulators all drive this type. It makes no system call: bytes come from a ``Link``, time
/// is an argument, and requests that may change something are stored by a `CommitLog` before they are executed.
///
///     var turn = Turn(engine, log: log)
///     while !turn.isDrained {
///       // wait until turn.next(after: now), or until the link or the log has an event
///       turn.run(&link, now: now)
///     }
///
/// A connection's requests are executed and answered in their order. Requests of other connections that read something see the
/// state before a batch that is not stored yet.
public struct Turn: ~Copyable {
  public let engine: Engine
  private var intake = Intake()
  private var commits: PendingCommits
  /// Connections whose peer takes bytes again.
  private var writable: [ConnectionID] = []
  /// Connections that may have to be closed at the end of the turn.
  private var ending: [SessionHandle] = []
  /// Connections whose next request found no room in the open batch.
  private var stalled: [SessionHandle] = []
  private let slices: UnsafeMutableBufferPointer<UnsafeRawBufferPointer>
  private var shutdown: Shutdown?
  private var now: Instant
  /// When the batches' unused memory is looked at next.
  private var nextRelease: Instant
  /// Whether the last turn had input to decode.
  public private(set) var tookInput = false
  /// How storing goes: batches refused since the last one that was stored, and why.
  public private(set) var failedBatches = 0
  public private(set) var failureReason = ""
  /// Why the log cannot say what is stored; the daemon must stop then.
  public private(set) var lossReason: String?

  private struct Shutdown {
    let reason: String
    let message: String
    var isAnnounced = false
  }

  /// Slices of one write.
  private static let slicesPerWrite = 1024
  /// Requests of one JSON-RPC batch that are taken in a turn.
  private static let arrayBudget = 1024

  /// - Parameter engine: its feeds are recovered already.
  public init(_ engine: Engine, log: any CommitLog, now: Instant) {
    self.engine = engine
    self.now = now
    nextRelease = now
    commits = PendingCommits(log, maxDepth: engine.limits.maxDepth)
    assert(engine.isDurable != log.storesAtOnce, "the engine must know whether what it does is logged")
    slices = .allocate(capacity: Self.slicesPerWrite)
    slices.initialize(repeating: UnsafeRawBufferPointer(start: nil, count: 0))
  }

  deinit { slices.deallocate() }

  /// Does one turn. Never waits.
  public mutating func run(_ link: inout some Link & ~Copyable, now: Instant) {
    self.now = now
    engine.begin(at: now)
    completeBatches()
    openBatch()
    takeInput(&link)
    decodeInput(&link)
    appendBatch()
    completeBatches()
    engine.attend()
    continueAnswers()
    releaseUnused()
    shutDownIfDue()
    engine.giveAll()
    write(&link)
    closeFinished(&link)
  }

  /// The last batch that was executed or refused: an image of the state covers the log up to it.
  public var executed: UInt64 { commits.executed }

  /// Whether the log has batches that it has neither stored nor refused.
  public var awaitsLog: Bool { !commits.isIdle }

  /// When the next turn is due.
  public func next(after now: Instant) -> NextTurn {
    if engine.hasWork || !engine.resumed.isEmpty { return .now }
    if commits.canAppend && (!commits.open.frames.isEmpty || !engine.internalRequests.isEmpty) { return .now }
    if commits.isIdle && commits.open.count > 0 { return .now }
    if let shutdown, !shutdown.isAnnounced, commits.isEmpty { return .now }
    guard let moment = engine.nextDeadline else { return .whenReadable }
    return moment <= now ? .now : .at(moment)
  }

  // MARK: The end

  /// Stops reading, has everything stored and executed that was taken, then says `bye` to all connections.
  public mutating func drain(reason: String, message: String) {
    if shutdown == nil { shutdown = Shutdown(reason: reason, message: message) }
  }

  /// Whether all connections are closed after ``drain(reason:message:)``.
  public var isDrained: Bool {
    guard let shutdown else { return false }
    return shutdown.isAnnounced && engine.isEmpty
  }

  /// Gives up the connections that are left, when the time to drain them is over.
  public mutating func closeAll(_ link: inout some Link & ~Copyable) {
    engine.forEachSession { session in
      engine.disconnect(session)
      link.close(session.id)
    }
  }

  private mutating func shutDownIfDue() {
    guard let shutdown, !shutdown.isAnnounced, commits.isEmpty else { return }
    self.shutdown?.isAnnounced = true
    engine.shutDown(reason: shutdown.reason, message: shutdown.message)
  }

  // MARK: Input

  private mutating func takeInput(_ link: inout some Link & ~Copyable) {
    while let event = link.nextEvent() {
      switch event {
      case .accepted(let peer): accept(peer, &link)
      case .readable(let id, let hungUp):
        if let session = engine.session(id) { read(session, hungUp: hungUp, &link) }
      case .writable(let id): writable.append(id)
      case .gone(let id):
        if let session = engine.session(id) { close(session, &link) }
      }
    }
    resume(&link)
  }

  private mutating func accept(_ peer: Peer, _ link: inout some Link & ~Copyable) {
    let session = engine.connect(peer)
    link.assign(session.id)
    if let shutdown, shutdown.isAnnounced {
      engine.close(session, reason: shutdown.reason, message: shutdown.message, level: .debug)
    }
    if session.isClosing { link.watch(session.id, reading: false, writing: false) }
  }

  /// Whether a connection's requests can be taken now.
  private func takes(_ session: Session) -> Bool {
    shutdown == nil && engine.wantsInput(session)
  }

  private mutating func read(_ session: Session, hungUp: Bool, _ link: inout some Link & ~Copyable) {
    if hungUp { session.input.isDeaf = true }
    guard !session.input.hasEnded, !session.input.isTaken else {
      if session.input.hasEnded { note(session) }
      return
    }
    guard takes(session), !session.input.isPaused else { return pause(session, &link) }
    if session.input.held.count > Intake.shortInput { readLong(session, &link) } else { readShort(session, &link) }
  }

  /// Reads into the turn's memory. When that is used up, the link reports the connection again in the next turn.
  private mutating func readShort(_ session: Session, _ link: inout some Link & ~Copyable) {
    guard let space = intake.space(behind: session.input.held.count) else { return }
    switch link.read(session.id, into: space) {
    case .bytes(let count): intake.didRead(count, of: session)
    case .wouldBlock: break
    case .end: endInput(session, isDeaf: false, &link)
    case .failed: endInput(session, isDeaf: true, &link)
    }
  }

  /// Reads to behind the held bytes, at most to the end of the frame that they begin.
  private mutating func readLong(_ session: Session, _ link: inout some Link & ~Copyable) {
    var budget = Intake.bytesPerTurn
    reading: while budget > 0,
      case .incomplete(let total) = Frame.first(in: session.input.held.bytes, maxFrame: engine.limits.maxFrame)
    {
      let space = session.input.held.space(towards: total ?? 0)
      switch link.read(session.id, into: space) {
      case .bytes(let count):
        session.input.held.didAppend(count)
        budget -= count
        if count < space.count { break reading }
      case .wouldBlock: break reading
      case .end: return endInput(session, isDeaf: false, &link)
      case .failed: return endInput(session, isDeaf: true, &link)
      }
    }
    intake.takeHeld(session)
  }

  /// The peer sends nothing more. Frames that are held are executed before that counts: the end is found again after them.
  private mutating func endInput(_ session: Session, isDeaf: Bool, _ link: inout some Link & ~Copyable) {
    if isDeaf { session.input.isDeaf = true }
    if case .complete = Frame.first(in: session.input.held.bytes, maxFrame: engine.limits.maxFrame) {
      return intake.takeHeld(session)
    }
    engine.endOfInput(session)
    note(session)
    updateWatch(session, &link)
  }

  /// Stops reading from a connection until its requests can be taken again.
  private mutating func pause(_ session: Session, _ link: inout some Link & ~Copyable) {
    session.input.isPaused = true
    updateWatch(session, &link)
    // Answers reach a deaf peer no more. Discarding them lets the rest of what it sent be executed.
    if session.input.isDeaf { writable.append(session.id) }
  }

  /// Continues with connections that were paused and whose requests can be taken now.
  private mutating func resume(_ link: inout some Link & ~Copyable) {
    if engine.resumed.isEmpty { return }
    for handle in engine.takeResumed() {
      guard let session = engine.session(handle), session.input.isPaused else { continue }
      session.input.isPaused = false
      if session.input.isTaken || session.input.hasEnded { continue }
      if takes(session), session.input.held.count > 0 { intake.takeHeld(session) } else { settle(session, &link) }
    }
  }

  /// Pauses a connection whose requests cannot be taken, and has others reported again.
  private mutating func settle(_ session: Session, _ link: inout some Link & ~Copyable) {
    if session.input.hasEnded || session.input.isTaken { return }
    if session.input.isPaused || !takes(session) { pause(session, &link) } else { updateWatch(session, &link) }
  }

  private func updateWatch(_ session: Session, _ link: inout some Link & ~Copyable) {
    let input = session.input.isPaused || session.input.hasEnded || session.isClosing
    link.watch(session.id, reading: !input, writing: session.isBlocked)
  }

  // MARK: Decoding

  private mutating func decodeInput(_ link: inout some Link & ~Copyable) {
    if !engine.workingSessions.isEmpty { continueArrays() }
    for piece in intake.pieces {
      guard let session = engine.session(piece.session) else { continue }
      session.input.isTaken = false
      let bytes = intake.bytes(of: piece, session)
      let count = decode(bytes, of: session)
      engine.count(input: count)
      intake.keepRest(of: piece, session, decoded: count)
      if session.isClosing { session.input.held.removeAll() }
      engine.recount(session)
      settle(session, &link)
    }
    tookInput = !intake.pieces.isEmpty
    intake.removeAll()
  }

  /// Decodes whole frames at the beginning of `bytes` and executes each, or adds it to the open batch. Returns how many
  /// bytes they were.
  private mutating func decode(_ bytes: UnsafeRawBufferPointer, of session: Session) -> Int {
    var count = 0
    while count < bytes.count {
      if session.isClosing || session.line.isCut { return bytes.count }
      guard engine.wantsInput(session) else {
        session.input.isPaused = true
        return count
      }
      let rest = UnsafeRawBufferPointer(rebasing: bytes[count...])
      switch Frame.first(in: rest, maxFrame: engine.limits.maxFrame) {
      case .incomplete:
        session.input.notePartial(rest.count, now: now)
        return count
      case .badLength(let length):
        refuseStream(of: session, length: length)
        return bytes.count
      case .complete(let payload):
        guard take(payload, of: session) else {
          session.input.isPaused = true
          return count
        }
        count &+= Frame.headerLength &+ payload.count
      }
    }
    session.input.partialSince = nil
    return count
  }

  /// Decodes a frame's payload. Returns false when the open batch has no room for it: it is offered again later.
  private mutating func take(_ payload: UnsafeRawBufferPointer, of session: Session) -> Bool {
    let message: JSONView
    do throws(JSONError) {
      message = try commits.open.scan(payload)
    } catch {
      engine.countRequest(of: session, 1)
      refuse(session, engine.refusal(of: error), id: nil)
      return true
    }
    if message.kind == .array { return take(array: message, payload, of: session) }
    return take(message, payload, of: session)
  }

  /// Executes a request, or adds it to the open batch. Returns false when that has no room.
  private mutating func take(_ message: JSONView, _ payload: UnsafeRawBufferPointer, of session: Session) -> Bool {
    engine.countRequest(of: session, 1)
    var id: JSONView?
    do throws(FeedError) {
      let (method, request) = try engine.decode(message, id: &id)
      if engine.access.isRestricted { try engine.access.check(method, request.params, by: session.peer) }
      try Admission.checkDefinitions(of: method, request.params)
      let isLogged = !commits.storesAtOnce && isLogged(method, request, of: session)
      if isLogged || !session.line.isEmpty {
        guard commits.hasRoom(for: payload.count) else {
          // It is decoded again when there is room.
          engine.countRequest(of: session, -1)
          stall(session)
          return false
        }
        add(method, request, message, payload, isLogged: isLogged, of: session)
        return true
      }
      try engine.execute(
        method, Parameters(object: request.params), engine.makeReply(to: session, id: request.id?.text))
    } catch {
      guard error.isAnswered(with: id, message: message) else { return true }
      refuse(session, error.naming(message.member("params")?.member("feed")?.truncatedName), id: id)
    }
    return true
  }

  /// Whether a request must be stored before it is executed.
  private func isLogged(_ method: Method, _ request: Request, of session: Session) -> Bool {
    if method.isLogged { return true }
    // From the first watch on a feed keeps its changes; recovery must know that to keep them as well. What the requests ahead
    // do to the feed is not known yet.
    return method.rules.effect == .mayBeginHistory && (!session.line.isEmpty || engine.mayBeginHistory(request))
  }

  private mutating func add(
    _ method: Method, _ request: Request, _ message: JSONView, _ payload: UnsafeRawBufferPointer, isLogged: Bool,
    of session: Session
  ) {
    if isLogged {
      commits.open.log(method, request, message, of: session.handle, payload: payload)
    } else {
      commits.open.wait(method, request, message, of: session.handle, payload: payload)
    }
    session.line.add(bytes: payload.count, isRead: !isLogged, isHeld: method.rules.cost == .long)
  }

  /// Answers with an error, behind the answers of the requests ahead.
  private mutating func refuse(_ session: Session, _ error: FeedError, id: JSONView?) {
    if session.line.isEmpty { return engine.refuse(engine.makeReply(to: session, id: id?.text), error) }
    let refusal = RequestBatch.Refusal(
      error: error, id: id.map { Array($0.text) } ?? [], hasID: id != nil, endOfStream: nil)
    commits.open.refuse(refusal, of: session.handle)
    session.line.add(bytes: 0, isRead: true, isHeld: false)
  }

  /// A frame has an impossible length: what follows cannot be read.
  private mutating func refuseStream(of session: Session, length: Int) {
    let reason = "a frame's length is \(length) and must be 1 to \(engine.limits.maxFrame)"
    if session.line.isEmpty { return engine.endStream(of: session, reason: reason) }
    let refusal = RequestBatch.Refusal(
      error: .invalidRequest(reason: reason), id: [], hasID: false, endOfStream: reason)
    commits.open.refuse(refusal, of: session.handle)
    session.line.add(bytes: 0, isRead: true, isHeld: false)
    session.line.isCut = true
  }

  // MARK: JSON-RPC batches

  private mutating func take(array: JSONView, _ payload: UnsafeRawBufferPointer, of session: Session) -> Bool {
    if session.line.isEmpty {
      begin(array, of: session)
      return true
    }
    guard commits.hasRoom(for: payload.count) else {
      stall(session)
      return false
    }
    commits.open.wait(array: array, of: session.handle, payload: payload)
    session.line.add(bytes: payload.count, isRead: true, isHeld: true)
    return true
  }

  /// Begins with the requests of a JSON-RPC batch, which is first in its line.
  private mutating func begin(_ array: JSONView, of session: Session) {
    if array.count == 0 {
      let error = FeedError.invalidRequest(reason: "a batch must hold at least one request")
      return engine.refuse(engine.makeReply(to: session, id: nil), error)
    }
    let batch = Batch(maxDepth: engine.limits.maxDepth)
    session.batch = batch
    if commits.storesAtOnce {
      // Nothing waits, so the array's own tape stays valid while its requests are executed.
      var budget = Self.arrayBudget
      var elements = array.elements
      while let message = elements.next() {
        if !mayGoOn(session, budget) {
          batch.keep(from: message, of: array)
          break
        }
        _ = take(message, message.text, of: session)
        budget -= 1
      }
    } else {
      batch.keep(all: array)
      takeRequests(of: batch, session)
    }
    end(batch, of: session)
  }

  /// Goes on with the JSON-RPC batches under way.
  private mutating func continueArrays() {
    for session in engine.workingSessions {
      guard let batch = session.batch, session.work == nil, session.line.isEmpty, !session.line.isStalled else {
        continue
      }
      takeRequests(of: batch, session)
      end(batch, of: session)
    }
  }

  private mutating func takeRequests(of batch: Batch, _ session: Session) {
    var budget = Self.arrayBudget
    while mayGoOn(session, budget), let message = batch.next() {
      if commits.storesAtOnce {
        _ = take(message, message.text, of: session)
      } else if !takeElement(message.text, of: session) {
        return batch.putBack()
      }
      budget -= 1
    }
  }

  /// Takes a request out of a JSON-RPC batch, onto the tape of the open batch.
  private mutating func takeElement(_ text: UnsafeRawBufferPointer, of session: Session) -> Bool {
    guard let message = try? commits.open.scan(text) else { return true }
    return take(message, text, of: session)
  }

  private func mayGoOn(_ session: Session, _ budget: Int) -> Bool {
    budget > 0 && !session.isClosing && session.work == nil && session.line.takesMore
      && session.output.count <= engine.limits.maxQueue
  }

  /// Sends the answers of a JSON-RPC batch whose requests are all answered; else leaves it for a later turn.
  private mutating func end(_ batch: Batch, of session: Session) {
    if session.isClosing { return }
    if session.work != nil || batch.isUnfinished || !session.line.isEmpty { return engine.keepWorking(session) }
    engine.sendAnswers(of: batch, to: session)
    session.batch = nil
  }

  /// Goes on with long answers; a JSON-RPC batch whose last request is answered ends.
  private mutating func continueAnswers() {
    if engine.workingSessions.isEmpty { return }
    engine.advanceAnswers()
    for session in engine.workingSessions {
      if let batch = session.batch, session.work == nil, session.line.isEmpty, !batch.isUnfinished {
        end(batch, of: session)
      }
      if session.work == nil, session.batch == nil { engine.finishWork(of: session) }
    }
    engine.forgetFinishedWork()
  }

  // MARK: The log

  /// Begins the open batch with what the daemon itself has to do, if the log takes the batch in this turn.
  private mutating func openBatch() {
    guard commits.canAppend else { return }
    for request in engine.internalRequests.take(at: now, nextExpiry: engine.catalog.nextExpiry) {
      commits.open.log(request)
    }
  }

  /// Gives the open batch to the log, if that takes one more.
  private mutating func appendBatch() {
    guard commits.canAppend else { return }
    if commits.open.frames.isEmpty {
      // Only reads are left, whose requests ahead were executed.
      if commits.isIdle && commits.open.count > 0 { executeWaiting() }
      return
    }
    commits.append(at: now, revision: engine.catalog.revision)
    resumeStalled()
  }

  /// The open batch has no room for the next request of a connection.
  private mutating func stall(_ session: Session) {
    session.line.isStalled = true
    stalled.append(session.handle)
  }

  /// The open batch has room again.
  private mutating func resumeStalled() {
    if stalled.isEmpty { return }
    for handle in stalled {
      guard let session = engine.session(handle) else { continue }
      session.line.isStalled = false
      engine.resumeIfPossible(session)
    }
    stalled.removeAll(keepingCapacity: true)
  }

  private mutating func executeWaiting() {
    let batch = commits.takeOpen()
    execute(batch, failure: nil)
    commits.recycle(batch)
    resumeStalled()
  }

  /// Executes the batches that the log has stored, and refuses those that it could not store.
  private mutating func completeBatches() {
    if commits.storesAtOnce { return }
    while let event = commits.log.nextEvent() {
      switch event {
      case .stored(let number):
        complete(through: number, failure: nil)
        failedBatches = 0
      case .failed(let number, let reason):
        // All before it were reported as stored.
        assert(commits.first(through: number).map { $0.number == number } ?? true)
        failureReason = reason
        failedBatches &+= complete(through: .max, failure: reason)
      case .received(let batch):
        do throws(ReplayError) {
          try engine.execute(received: batch)
        } catch {
          lossReason = "a batch of another member cannot be executed: \(error)"
        }
      case .lost(let reason):
        lossReason = reason
      }
    }
    if commits.isIdle && commits.open.count > 0 && commits.open.frames.isEmpty { executeWaiting() }
  }

  @discardableResult
  private mutating func complete(through number: UInt64, failure: String?) -> Int {
    var count = 0
    while let batch = commits.first(through: number) {
      assert(failure != nil || batch.revision.map { $0 == engine.catalog.revision } ?? true)
      execute(batch, failure: failure)
      commits.removeFirst()
      count &+= 1
    }
    return count
  }

  /// Executes the requests of a batch in order. With `failure`, those that were to be stored are refused.
  private mutating func execute(_ batch: RequestBatch, failure: String?) {
    if batch.number > 0 { engine.moment = batch.at }
    var session: Session?
    for index in 0..<batch.count {
      let entry = batch[index]
      if entry.kind == .internal {
        engine.complete(batch.internalRequest(entry), failure: failure)
        continue
      }
      if session?.handle != entry.session {
        if let session { leave(session) }
        session = engine.session(entry.session)
      }
      if let open = session, !open.isClosing {
        execute(entry, of: batch, open, failure: failure)
      } else if entry.kind == .logged, failure == nil {
        // The peer is gone. What was stored happens all the same.
        let (id, parameters) = batch.request(entry)
        engine.performSilently(entry.method, id, parameters)
      }
    }
    if let session { leave(session) }
    engine.moment = now
  }

  private mutating func execute(
    _ entry: RequestBatch.Entry, of batch: RequestBatch, _ session: Session, failure: String?
  ) {
    session.line.remove(
      bytes: Int(entry.length), isRead: entry.kind != .logged,
      isHeld: entry.kind == .array || entry.method.rules.cost == .long)
    switch entry.kind {
    case .logged:
      let (id, parameters) = batch.request(entry)
      if let failure, entry.method.isLogged {
        let error = FeedError.storageFailed(reason: failure)
        if let id {
          let feed = parameters.member("feed")?.truncatedName
          engine.refuse(engine.makeReply(to: session, id: id.text), error.naming(feed))
        }
      } else {
        // What only may begin a history is a read like others when it cannot be stored.
        engine.perform(entry.method, id, parameters, of: session, checksAccess: failure != nil)
      }
    case .waiting:
      let (id, parameters) = batch.request(entry)
      engine.perform(entry.method, id, parameters, of: session, checksAccess: true)
    case .array: begin(batch.array(entry), of: session)
    case .refused:
      let refusal = batch.refusal(entry)
      if let reason = refusal.endOfStream { return engine.endStream(of: session, reason: reason) }
      refusal.id.withUnsafeBytes { id in
        engine.refuse(engine.makeReply(to: session, id: refusal.hasID ? id : nil), refusal.error)
      }
    case .internal: assertionFailure("requests of the daemon belong to no connection")
    }
  }

  /// The requests of a connection were executed, as far as the batch at hand has some.
  private mutating func leave(_ session: Session) {
    guard session.line.isEmpty, !session.isClosing else { return }
    engine.recount(session)
    if session.work == nil && session.batch == nil { engine.finishWork(of: session) }
  }

  private mutating func releaseUnused() {
    if nextRelease > now { return }
    nextRelease = now.adding(seconds: 1)
    if engine.isEmpty { commits.releaseMemory() } else { commits.releaseUnused() }
  }

  /// Tokens that the tape of the open batch has room for.
  var tapeCapacity: Int { commits.open.tapeCapacity }

  // MARK: Output

  /// Writes to connections that take bytes again, then to all that have something new, each once.
  private mutating func write(_ link: inout some Link & ~Copyable) {
    for id in writable {
      guard let session = engine.session(id) else { continue }
      session.isBlocked = false
      flush(session, &link)
      engine.markDirty(session)
    }
    writable.removeAll(keepingCapacity: true)
    engine.forEachDirtySession { flush($0, &link) }
    engine.finishWrites()
  }

  /// Writes to one connection until it has everything or takes no more.
  private mutating func flush(_ session: Session, _ link: inout some Link & ~Copyable) {
    while !session.isBlocked && !session.input.isDeaf {
      let count = session.output.gather(into: slices)
      if count == 0 { break }
      var offered = 0
      for index in 0..<count { offered &+= slices[index].count }
      switch link.write(session.id, UnsafeBufferPointer(rebasing: slices[..<count])) {
      case .bytes(let written):
        engine.didWrite(session, written)
        if written < offered { session.isBlocked = true }
      case .wouldBlock:
        engine.didWrite(session, 0)
        session.isBlocked = true
      case .failed: session.input.isDeaf = true
      }
    }
    if session.input.isDeaf {
      session.isBlocked = false
      engine.discardOutput(of: session)
    }
    if session.isClosing {
      // A frame that the peer has begun and may not finish is not kept until it has read its last one.
      session.input.held.removeAll()
      if session.output.count == 0 { note(session) }
    }
    updateWatch(session, &link)
  }

  /// Lists a connection that may be over.
  private mutating func note(_ session: Session) {
    if session.input.isNoted { return }
    session.input.isNoted = true
    ending.append(session.handle)
  }

  private mutating func closeFinished(_ link: inout some Link & ~Copyable) {
    for handle in ending {
      guard let session = engine.session(handle) else { continue }
      session.input.isNoted = false
      let isGone = session.input.hasEnded && session.input.isDeaf
      if isGone || session.isClosing && session.output.count == 0 { close(session, &link) }
    }
    ending.removeAll(keepingCapacity: true)
  }

  private mutating func close(_ session: Session, _ link: inout some Link & ~Copyable) {
    let id = session.id
    engine.disconnect(session)
    link.close(id)
    if engine.isEmpty { commits.releaseMemory() }
  }
}
