import FeedModel

public enum NextTurn: Equatable {
  /// Immediately: there is work left.
  case now
  /// At a time, unless an event arrives before.
  case at(Instant)
  /// Only when the link or the log has an event.
  case whenReadable
}

/// The order of the daemon's work: take input, decode, append to the log, execute, publish, write.
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
/// The requests of a connection are executed and answered in order. Reads of other connections see the state before a
/// batch that is not stored yet.
public struct Turn: ~Copyable {
  public let engine: Engine
  private var reception: Reception
  private var dispatcher: Dispatcher
  private var completion: Completion
  private var delivery: Delivery
  private var shutdown: Shutdown?
  /// The time when unused memory of the batches is checked next.
  private var nextRelease: Instant

  private struct Shutdown {
    let reason: String
    let message: String
    var isAnnounced = false
  }

  /// - Parameter engine: its feeds must have been recovered.
  /// - Parameters:
  ///   - slices: runs long requests that change feeds in slices; without it each is executed in one turn.
  ///   - queries: runs long queries in slices; without it each is evaluated in one turn.
  ///   - deltas: composes long deltas for watches that fell behind in slices; without it each is composed in one turn.
  public init(
    _ engine: Engine, log: any CommitLog, slices: (any SliceRunner)? = nil, queries: (any SliceRunner)? = nil,
    deltas: (any SliceRunner)? = nil, now: Instant
  ) {
    self.engine = engine
    engine.longWork = LongWork(engine.commit, slices)
    engine.longAnswers.queries = ReadStack(queries)
    engine.watches.catchUps = LongCatchUps(deltas)
    nextRelease = now
    reception = Reception(engine)
    dispatcher = Dispatcher(engine, log)
    completion = Completion(engine)
    delivery = Delivery(engine)
    assert(engine.isDurable != log.storesNothing, "the engine must know whether what it does is logged")
  }

  deinit {
    engine.longWork.finish()
    engine.longAnswers.queries.finish()
    engine.watches.catchUps.finish()
  }

  /// Whether the last turn had input to decode.
  public var hadInput: Bool { reception.hadInput }
  /// The number of batches refused since the last stored one.
  public var failedBatches: Int { completion.failedBatches }
  /// The reason why the last failed batch could not be stored.
  public var failureReason: String { completion.failureReason }
  /// The reason why the log cannot determine what is stored; nil if it can. The daemon must then stop.
  public var lossReason: String? { completion.lossReason }
  /// The capacity of the open batch's tape in tokens.
  var tapeCapacity: Int { dispatcher.batches.open.tapeCapacity }

  /// Runs one turn. Does not block, but for a short write of the log.
  public mutating func run(_ link: inout some Link & ~Copyable, now: Instant) {
    engine.begin(at: now)
    completion.beginTurn()
    completion.completeBatches(&dispatcher)
    dispatcher.openBatch()
    readInput(&link)
    decodeInput(&link)
    dispatcher.appendBatch()
    completion.completeBatches(&dispatcher)
    engine.attend()
    if !engine.longWork.isExclusive { dispatcher.continueAnswers() }
    releaseUnused()
    shutDownIfDue()
    engine.giveAll()
    delivery.write(&link)
    delivery.closeFinished(&link)
    if engine.sessions.isEmpty { dispatcher.batches.releaseMemory() }
  }

  /// The number of the last batch that was executed or refused, up to which an image of the state covers the log; nil while a batch
  /// is executed in part.
  public var executed: UInt64? { isWithinBatch ? nil : dispatcher.batches.executed }

  /// Whether a batch is executed in part.
  public var isWithinBatch: Bool { completion.isWithinBatch }

  /// Whether a batch about which the log has decided is not executed or refused to the end.
  public var isExecuting: Bool { completion.hasWork }

  /// Whether feeds are half changed. An image that was begun must not be continued.
  public var isExclusive: Bool { engine.longWork.isExclusive }

  /// Whether the next batch waits for another turn, so that an image can be made, or a configuration be read, between two batches.
  public var pausesBetweenBatches: Bool {
    get { completion.pausesBetweenBatches }
    set { completion.pausesBetweenBatches = newValue }
  }

  /// Whether the log has batches that it has neither stored nor refused.
  public var awaitsLog: Bool { !dispatcher.batches.isIdle }

  /// When the next turn is due.
  public func next(after now: Instant) -> NextTurn {
    if reception.hasWork || engine.hasWork || dispatcher.hasWork || completion.hasWork || delivery.hasEnding {
      return .now
    }
    if let shutdown, !shutdown.isAnnounced, isIdle { return .now }
    guard let moment = engine.nextDeadline else { return .whenReadable }
    return moment <= now ? .now : .at(moment)
  }

  // MARK: The end

  /// Stops reading, stores and executes all requests that were taken, then queues `bye` for all connections.
  public mutating func drain(reason: String, message: String) {
    if shutdown == nil { shutdown = Shutdown(reason: reason, message: message) }
    reception.isDraining = true
  }

  /// Whether all connections are closed after ``drain(reason:message:)``.
  public var isDrained: Bool {
    guard let shutdown else { return false }
    return shutdown.isAnnounced && engine.sessions.isEmpty
  }

  /// Closes the remaining connections after the drain timeout.
  public mutating func closeAll(_ link: inout some Link & ~Copyable) {
    for session in engine.sessions.all {
      engine.disconnect(session)
      link.close(session.id)
    }
  }

  /// Ends without executing the waiting requests: the log cannot tell which of them are stored. Sends `bye` to the connections
  /// that accept it at once, and closes all.
  public mutating func abandon(_ link: inout some Link & ~Copyable, reason: String, message: String) {
    engine.shutDown(reason: reason, message: message)
    delivery.write(&link)
    closeAll(&link)
  }

  /// Whether no request waits or is executed in part.
  private var isIdle: Bool { dispatcher.batches.isEmpty && !completion.isWithinBatch }

  private mutating func shutDownIfDue() {
    guard let shutdown, !shutdown.isAnnounced, isIdle else { return }
    self.shutdown?.isAnnounced = true
    engine.shutDown(reason: shutdown.reason, message: shutdown.message)
  }

  // MARK: Steps

  private mutating func readInput(_ link: inout some Link & ~Copyable) {
    // First, so that connections which waited for this turn have their share before others of their user.
    reception.resume(&link, &delivery)
    while let event = link.nextEvent() {
      switch event {
      case .accepted(let peer): accept(peer, &link)
      case .readable(let id, let hungUp):
        if let session = engine.sessions[id] { reception.read(session, hungUp: hungUp, &link, &delivery) }
      case .writable(let id): delivery.noteWritable(id)
      case .hungUp(let id):
        if let session = engine.sessions[id] { reception.hangUp(session, &delivery) }
      case .gone(let id):
        if let session = engine.sessions[id] { delivery.close(session, &link) }
      }
    }
    reception.takeAll(&link, &delivery)
  }

  private mutating func accept(_ peer: Peer, _ link: inout some Link & ~Copyable) {
    let session = engine.connect(peer)
    link.assign(session.id)
    if let shutdown, shutdown.isAnnounced {
      engine.close(session, reason: shutdown.reason, message: shutdown.message, level: .debug)
    }
    if session.isClosing { link.watch(session.id, reading: false, writing: false) }
  }

  private mutating func decodeInput(_ link: inout some Link & ~Copyable) {
    if !engine.longAnswers.isEmpty { dispatcher.continueArrays() }
    // Not before: what was begun in earlier turns has budgets of its own, and could keep all other reads of its user waiting.
    engine.outbox.shares.beginTurn()
    reception.decodeAll(&link, &delivery, &dispatcher)
  }

  private mutating func releaseUnused() {
    if nextRelease > engine.now { return }
    nextRelease = engine.now.adding(seconds: 1)
    dispatcher.batches.releaseUnused()
  }
}

/// The connections of a turn: the source of its input and the destination of its output.
///
/// The daemon's link consists of sockets. Tests, benchmarks and simulators use links in memory that may lose, truncate
/// or delay bytes. No call blocks.
///
/// The link identifies a connection by the number that the turn assigned with ``assign(_:)``. After ``close(_:)`` the
/// link reports nothing about that connection, and the number may be assigned again in the same turn.
public protocol Link: ~Copyable {
  /// Returns the next event since the last turn; nil if there is none left in this turn.
  ///
  /// After `.accepted` the turn calls ``assign(_:)`` before it asks for the next event. A level-triggered link may
  /// report `.readable` and `.writable` again in each turn, as long as the turn watches for them.
  mutating func nextEvent() -> LinkEvent?

  /// Reads input, up to the size of `space`, which is not empty.
  mutating func read(_ id: ConnectionID, into space: UnsafeMutableRawBufferPointer) -> ReadOutcome

  /// Writes the slices in order, as far as the peer accepts them. There is at least one slice, and none is empty. The
  /// bytes are valid until the call returns.
  mutating func write(_ id: ConnectionID, _ slices: UnsafeBufferPointer<UnsafeRawBufferPointer>) -> WriteOutcome

  /// Sets the events of a connection that are reported. If neither is watched, only a hang-up is reported, once. The
  /// turn may repeat the call; the link ignores a call that changes nothing.
  mutating func watch(_ id: ConnectionID, reading: Bool, writing: Bool)

  /// Prepares for long frames to a connection that did not accept all that it was offered. A link may ignore the call; the
  /// turn repeats it.
  mutating func makeRoom(_ id: ConnectionID)

  /// Assigns a number to the connection that was just reported as accepted. It is watched for reading.
  mutating func assign(_ id: ConnectionID)

  /// Closes a connection. Unread input is discarded in such a way that the peer can still read the written output.
  mutating func close(_ id: ConnectionID)
}

extension Link where Self: ~Copyable {
  public mutating func makeRoom(_ id: ConnectionID) {}
}

public enum LinkEvent: Equatable {
  case accepted(Peer)
  /// There is input, or the end of the input. `hungUp`: the peer has also stopped reading.
  case readable(ConnectionID, hungUp: Bool)
  /// The peer accepts bytes again.
  case writable(ConnectionID)
  /// The peer hung up while nothing was watched: it has stopped reading. Its earlier input may still be read.
  case hungUp(ConnectionID)
  /// The connection is lost. It can be neither read nor written.
  case gone(ConnectionID)
}

public enum ReadOutcome: Equatable {
  /// The number of bytes that were read, at least 1. If it is less than the space, there is no more input for now.
  case bytes(Int)
  case wouldBlock
  /// The peer sends no more input.
  case end
  /// The connection failed: the peer neither sends nor reads.
  case failed
}

public enum WriteOutcome: Equatable {
  /// The number of bytes that were written. If it is less than offered, the peer accepts no more for now.
  case bytes(Int)
  case wouldBlock
  /// The connection failed: the peer has stopped reading. Its earlier input may still be read.
  case failed
}
