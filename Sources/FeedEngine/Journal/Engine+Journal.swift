import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// The journal: what may change something is stored first and executed then.
///
/// A turn of a durable daemon is: `beginTurn`, `prepare` for each connection that has input, store `journalBatch`, `didStore`
/// or `storageDidFail`, `receive` for the same connections in the same order, and then the turn goes on as ever. Requests
/// are prepared and executed in one order, which is the order of the journal.
extension Engine {
  /// Begins a turn whose requests are all executed at `now`.
  public func beginTurn(now: Instant) {
    self.now = now
    turnTime = now
    journal.removeAll(keepingCapacity: journal.capacity <= 1 << 20)
    storageFailure = nil
    hasPrepared = true
    prepared.removeAll()
    if let moment = nextEviction, moment <= now { prepared.append(.evict) }
    prepared.append(contentsOf: submitted)
    submitted.removeAll()
    for request in prepared {
      let start = journal.beginFrame()
      request.append(to: &journal)
      journal.endFrame(at: start)
    }
    prepareBatches()
  }

  /// Has the daemon itself do something to its feeds: at once, or, where it must be stored, in the next turn.
  func submit(_ request: InternalRequest) {
    if isDurable { submitted.append(request) } else { execute(request) }
  }

  /// Executes something of the daemon's own as a commit, under the conditions under which it was found to be possible.
  private func execute(_ request: InternalRequest) {
    switch request {
    case .evict: evictExpired()
    case .rows(let feed): takeRows(of: feed)
    case .configure(let definitions, let names):
      managed.definitionsDidChange()
      catalog.begin(at: now)
      do throws(FeedError) {
        for definition in definitions { try catalog.define(definition, replace: true) }
        for name in names { try catalog.undefine(name) }
      } catch {
        catalog.rollBack()
        return report(.error, "The configuration could not be applied: \(error.reason)")
      }
      if catalog.commit() { counters.commits &+= 1 }
    }
  }

  /// Looks at the whole frames at the beginning of `bytes`, puts those that may change something into the batch, and
  /// decides how many of them this turn will execute.
  public func prepare(_ id: ConnectionID, _ bytes: UnsafeRawBufferPointer) {
    guard let session = session(id) else { return }
    session.preparedBytes = 0
    guard !session.isClosing, canWork(session) else { return }
    var examined = 0
    var reads = 0
    while case .complete(let payload) = Frame.first(
      in: UnsafeRawBufferPointer(rebasing: bytes[examined...]), maxFrame: limits.maxFrame)
    {
      let end = examined + Frame.headerLength + payload.count
      let verdict = judge(payload, of: session)
      if verdict == .store { journal.append(UnsafeRawBufferPointer(rebasing: bytes[examined..<end])) }
      examined = end
      // What follows an answer that may take several turns is executed only after it.
      if verdict == .mayTakeTurns { break }
      if verdict == .read { reads += 1 }
      if reads == Self.readsPerTurn { break }
    }
    session.preparedBytes = examined
  }

  /// Requests for elements that one turn executes for a connection: their answers may be large.
  private static let readsPerTurn = 32

  private enum Verdict {
    case pass
    case read
    case store
    case mayTakeTurns
  }

  private func judge(_ payload: UnsafeRawBufferPointer, of session: Session) -> Verdict {
    // What turns out to be no sound request when it is executed does nothing, and so again when it is replayed. One that
    // names another method as well, later, is refused if that one could hold up what was prepared after it.
    if !access.isRestricted, let method = Method(atBeginningOf: payload), method.isLogged { return .store }
    guard let message = try? scanner.scan(payload) else { return .pass }
    // The requests of a batch are stored one by one, in the turns that execute them.
    if message.kind == .array { return .mayTakeTurns }
    guard let method = method(of: message) else { return .pass }
    if method.isLogged { return mayStore(method, message, of: session) ? .store : .pass }
    if method.rules.cost == .long { return .mayTakeTurns }
    if method.rules.effect == .mayBeginHistory { return mayBeginHistory(message) ? .store : .pass }
    return method.rules.cost == .elements ? .read : .pass
  }

  /// Whether a `watch` is perhaps the first of its feed: from then on the feed keeps its changes, which recovery must know to
  /// keep them as well.
  private func mayBeginHistory(_ message: JSONView) -> Bool {
    guard let name = message.member("params")?.member("feed")?.string else { return false }
    guard let feed = try? catalog.feed(named: name) else { return true }
    return feed.history == nil
  }

  /// Whether the access rules let a session do this. What they forbid is refused when its turn comes, and must not be found
  /// in the journal, which is replayed without rules.
  func mayStore(_ method: Method, _ message: JSONView, of session: Session) -> Bool {
    guard access.isRestricted else { return true }
    do {
      try access.check(method, message.member("params"), by: session.peer)
      return true
    } catch {
      return false
    }
  }

  func method(of message: JSONView) -> Method? {
    message.member("method").flatMap { Method($0) }
  }

  /// What must be stored before this turn may execute anything; nil when nothing may change.
  public var journalBatch: JournalBatch? {
    if journal.isEmpty { return nil }
    return JournalBatch(revision: catalog.revision, at: now, requests: journal.bytes)
  }

  /// The batch is stored: its requests may be executed.
  public func didStore() {
    executePrepared()
  }

  /// The batch could not be stored: requests of this turn that may change something are refused with `reason`.
  public func storageDidFail(_ reason: String) {
    storageFailure = reason
    if prepared.contains(.evict) { evictionsResumeAt = now.adding(seconds: 1) }
    if prepared.contains(where: \.isConfiguration) {
      report(.error, "The configuration could not be stored and is not applied: \(reason)")
    }
    for case .rows(let feed) in prepared { managed.didFail(feed) }
    prepared.removeAll()
    executePrepared()
  }

  /// When the next eviction is to be made; after one that could not be stored, not at once.
  var nextEviction: Instant? {
    catalog.nextExpiry.map { max($0, evictionsResumeAt) }
  }

  /// Executes what the turn has in hand before the input of its connections: evictions, then shares of batches.
  func executePrepared() {
    guard hasPrepared else { return }
    hasPrepared = false
    for request in prepared { execute(request) }
    prepared.removeAll()
    executeBatches()
  }

  /// Executes a stored batch again, before the first client connects. Nobody is answered.
  public func replay(_ batch: JournalBatch) throws(ReplayError) {
    guard batch.revision >= catalog.revision else {
      throw .revisionMismatch(stored: batch.revision, reached: catalog.revision)
    }
    // Commits of managed feeds, whose rows are read again at each start, are not in the journal.
    catalog.skip(to: batch.revision)
    now = batch.at
    isReplaying = true
    defer { isReplaying = false }
    let session = Session(id: ConnectionID(rawValue: -1), peer: Peer(uid: 0, gid: 0, pid: 0), connectedAt: now)
    var offset = 0
    while offset < batch.requests.count {
      let rest = UnsafeRawBufferPointer(rebasing: batch.requests[offset...])
      guard case .complete(let payload) = Frame.first(in: rest, maxFrame: .max) else { throw .damaged(offset: offset) }
      let request: InternalRequest?
      do { request = try internalRequest(payload) } catch { throw .damaged(offset: offset) }
      if let request { execute(request) } else { handle(payload, of: session) }
      offset += Frame.headerLength + payload.count
    }
  }

  private func internalRequest(_ payload: UnsafeRawBufferPointer) throws(FeedError) -> InternalRequest? {
    guard let message = try? scanner.scan(payload) else { return nil }
    return try InternalRequest(message, limits: limits)
  }

  /// Goes on under other limits: those of the run whose journal is replayed, or of this run when replay is over.
  public func adopt(_ limits: Limits) {
    self.limits = limits
    catalog.adopt(limits)
    scanner = JSONScanner(maxDepth: limits.maxDepth)
  }
}
