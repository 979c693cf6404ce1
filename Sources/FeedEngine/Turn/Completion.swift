import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// Executes batches that the log has stored, and refuses batches that it could not store.
///
/// A batch may take several turns: between two of its requests, and within one that takes long (``LongWork``). Invariant:
/// the batch that is being executed is the oldest one, and requests of later batches are executed after it.
struct Completion: ~Copyable {
  /// What the log has decided about batches.
  private struct Verdict {
    let through: UInt64
    /// The reason why they could not be stored; nil if they are stored.
    let failure: String?
  }

  /// The batch that is being executed.
  private struct Progress {
    let batch: RequestBatch
    let failure: String?
    /// The time of the first turn.
    let start: Instant
    /// The first request that is not executed. While long work is under way, the request after that.
    var next = 0

    /// The time at which the batch is executed; nil if it has none of its own.
    var moment: Instant? { batch.number > 0 ? batch.at : nil }
  }

  /// The bytes of a batch whose memory takes long to free.
  private static let largeBatch = 1 << 20

  private let engine: Engine
  /// The events of the log, in order, from `nextEvent` on not handled yet. Empty if all were handled.
  private var events: [LogEvent] = []
  private var nextEvent = 0
  private var verdict: Verdict?
  private var progress: Progress?
  /// The batch of another member that is being executed; nil while `progress` is not.
  private var received: ReceivedBatch?
  /// The bytes charged for what the long work that is under way needs.
  private var workMemory = 0
  private var looks = ClockLooks()
  /// Whether a slice of long work was done in this turn, and whether a request was executed.
  private var didResume = false
  private var didExecute = false
  /// Whether the next batch waits for another turn, so that an image can be made, or a configuration be read, between two batches.
  var pausesBetweenBatches = false
  /// The number of batches refused since the last stored one, and the reason.
  private(set) var failedBatches = 0
  private(set) var failureReason = ""
  /// The reason why the log cannot determine what is stored.
  private(set) var lossReason: String?

  init(_ engine: Engine) { self.engine = engine }

  /// Whether a batch was executed in part.
  var isWithinBatch: Bool { progress != nil || received != nil }
  /// Whether the next turn has a batch to execute.
  var hasWork: Bool { isWithinBatch || verdict != nil || !events.isEmpty }

  mutating func beginTurn() {
    didResume = false
    didExecute = false
    engine.longWork.beginTurn()
  }

  /// Executes batches that the log has stored, as far as the time of this turn allows, and refuses batches that it could
  /// not store.
  mutating func completeBatches(_ dispatcher: inout Dispatcher) {
    if !dispatcher.batches.storesNothing {
      // All are taken: an event that is left would wake the event loop again and again.
      while let event = dispatcher.batches.log.nextEvent() { events.append(event) }
    }
    guard resume(&dispatcher), followLog(&dispatcher) else { return }
    if dispatcher.batches.hasOnlyWaiting, !(didExecute && pausesBetweenBatches) { executeWaiting(&dispatcher) }
  }

  /// Continues the batch that was executed in part. Returns whether it is done.
  private mutating func resume(_ dispatcher: inout Dispatcher) -> Bool {
    guard isWithinBatch else { return true }
    if engine.longWork.isUnderWay {
      if didResume { return false }
      didResume = true
      if let moment = received?.moment ?? progress?.moment { engine.time.moment = moment }
      let isDone = engine.longWork.resume()
      engine.time.moment = engine.now
      dispatcher.resumeIfReadable()
      if let progress {
        let entry = progress.batch[progress.next - 1]
        if isDone { didFinishLong(entry, &dispatcher) } else { chargeWork(of: entry) }
      } else if isDone {
        received?.didFinishLongWork()
      }
      // What it took is freed in the next turn, besides what the work itself freed in this one.
      if !isDone || progress?.batch.byteCount ?? received?.byteCount ?? 0 >= Self.largeBatch { return false }
    }
    if didExecute && engine.longWork.isTurnOver { return false }
    return received != nil ? executeReceived() : executeBatch(&dispatcher)
  }

  /// Executes requests of a batch of another member. Returns whether it is done; otherwise the rest is left for another turn.
  private mutating func executeReceived() -> Bool {
    guard let received else { return true }
    didExecute = true
    engine.time.moment = received.moment
    defer { engine.time.moment = engine.now }
    looks.begin(engine.longWork)
    do throws(ReplayError) {
      while true {
        switch try received.step() {
        case .done:
          self.received = nil
          return true
        case .underWay where engine.longWork.isUnderWay: return false
        case .executed, .underWay: if engine.hasLongAnswers || looks.isTurnOver(engine.longWork) { return false }
        }
      }
    } catch {
      lossReason = "a batch of another member cannot be executed: \(error)"
      self.received = nil
      return true
    }
  }

  /// Executes or refuses the batches about which the log has decided. Returns false if some wait for another turn.
  private mutating func followLog(_ dispatcher: inout Dispatcher) -> Bool {
    while true {
      while let verdict, let batch = dispatcher.batches.first(through: verdict.through) {
        assert(verdict.failure != nil || batch.revision.map { $0 == engine.catalog.revision } ?? true)
        if didExecute && (engine.longWork.isTurnOver || pausesBetweenBatches) { return false }
        if verdict.failure != nil { failedBatches &+= 1 }
        progress = Progress(batch: batch, failure: verdict.failure, start: engine.now)
        guard executeBatch(&dispatcher) else { return false }
      }
      if let verdict, verdict.failure == nil { failedBatches = 0 }
      verdict = nil
      if events.isEmpty { return true }
      // Batches of other members take the time of the turn too.
      if didExecute && engine.longWork.isTurnOver { return false }
      handle(takeEvent(), dispatcher.batches)
      guard executeReceived() else { return false }
    }
  }

  /// Removes and returns the next event. Amortized O(1): other members may have stored many batches.
  private mutating func takeEvent() -> LogEvent {
    let event = events[nextEvent]
    nextEvent &+= 1
    if nextEvent &* 2 >= events.count {
      events.removeFirst(nextEvent)
      nextEvent = 0
    }
    return event
  }

  private mutating func handle(_ event: LogEvent, _ batches: borrowing PendingBatches) {
    switch event {
    case .stored(let number): verdict = Verdict(through: number, failure: nil)
    case .failed(let first, let last, let reason):
      // The log reported all earlier batches.
      assert(batches.first(through: last)?.number == first)
      failureReason = reason
      verdict = Verdict(through: last, failure: reason)
    case .ordered(let number, let moment):
      batches.first(through: number)?.setMoment(moment)
      verdict = Verdict(through: number, failure: nil)
    case .mark(let number):
      let engine = engine
      batches.log.didReach(number) { engine.catalog.makeImage() }
    case .received(let batch):
      received = ReceivedBatch(batch, engine)
    case .lost(let reason):
      lossReason = reason
    }
  }

  /// Executes an open batch that has nothing to store.
  mutating func executeWaiting(_ dispatcher: inout Dispatcher) {
    assert(progress == nil, "another batch was executed in part")
    progress = Progress(batch: dispatcher.batches.takeOpen(), failure: nil, start: engine.now)
    dispatcher.resumeStalled()
    _ = executeBatch(&dispatcher)
  }

  /// Executes the requests of the current batch in order. If it was not stored, the requests that needed storing are
  /// refused. Returns false if the rest is left for another turn.
  private mutating func executeBatch(_ dispatcher: inout Dispatcher) -> Bool {
    guard var progress else { return true }
    didExecute = true
    let batch = progress.batch
    if let moment = progress.moment { engine.time.moment = moment }
    var next = progress.next
    if batch.count &- next > 1 { looks.begin(engine.longWork) }
    var end = End.reached
    while end == .reached && next < batch.count {
      // A session that is certainly there: to look into an optional one counts a reference for each request.
      let session = engine.sessions[batch[next].session] ?? engine.sessions.nobody
      end = executeRun(progress, &next, session, &dispatcher)
      if end != .underWay && session !== engine.sessions.nobody { finishRequests(of: session) }
    }
    engine.time.moment = engine.now
    if end == .reached {
      self.progress = nil
      dispatcher.batches.didExecute(batch, in: engine.now.since(progress.start))
    } else {
      progress.next = next
      self.progress = progress
    }
    return end == .reached
  }

  /// Why the execution of requests ended: after the last one, because the time of the turn is over, or because the last one takes
  /// another turn.
  private enum End {
    case reached, turnOver, underWay
  }

  /// Executes the requests of one connection that follow each other from `next` on.
  /// - Parameter session: ``Sessions/nobody`` if the connection is gone.
  private mutating func executeRun(
    _ progress: Progress, _ next: inout Int, _ session: Session, _ dispatcher: inout Dispatcher
  ) -> End {
    let batch = progress.batch
    let handle = batch[next].session
    repeat {
      // At least one request is executed: otherwise a slow turn would repeat itself.
      if next > progress.next, engine.hasLongAnswers || looks.isTurnOver(engine.longWork) { return .turnOver }
      let entry = batch[next]
      batch.lookAhead(from: next, session)
      next &+= 1
      guard executeEntry(entry, of: batch, session, &dispatcher, failure: progress.failure) else { return .underWay }
    } while next < batch.count && batch[next].session == handle
    return .reached
  }

  /// Executes one request. Returns false if it takes another turn.
  private mutating func executeEntry(
    _ entry: RequestBatch.Entry, of batch: RequestBatch, _ session: Session, _ dispatcher: inout Dispatcher,
    failure: String?
  ) -> Bool {
    if entry.kind == .internal {
      let (engine, request) = (engine, batch.internalRequest(entry))
      if failure == nil, engine.mayBeLong(request) {
        return engine.longWork.run(steps: 0) { engine.complete(request, failure: nil) }
      }
      engine.complete(request, failure: failure)
      return true
    }
    let isGone = session === engine.sessions.nobody || session.isClosing
    if isGone {
      // What changes feeds is executed nevertheless.
      guard failure == nil, entry.kind == .logged || entry.kind == .waiting && entry.method.isLogged else {
        remove(entry)
        return true
      }
    } else if entry.kind != .logged && entry.kind != .waiting {
      Self.removeFromLine(entry, of: session)
      answer(entry, of: batch, session, &dispatcher)
      return true
    }
    let (id, parameters) = batch.request(entry)
    if failure == nil, let steps = steps(of: entry, parameters) {
      return executeLong(entry, id, parameters, isGone ? nil : session, steps: steps)
    }
    if isGone {
      engine.executeSilently(entry.method, id, parameters)
      remove(entry)
    } else {
      Self.removeFromLine(entry, of: session)
      engine.executeOrRefuse(entry, id, parameters, session, failure: failure)
    }
    return true
  }

  /// Executes a request that may take several turns. Returns whether it is done.
  /// - Parameter session: nil if the client is gone.
  @inline(never)
  private mutating func executeLong(
    _ entry: RequestBatch.Entry, _ id: JSONView?, _ parameters: Parameters, _ session: Session?, steps: Int
  ) -> Bool {
    let isDone = engine.longWork.run(steps: steps) { [engine] in
      guard let session else { return engine.executeSilently(entry.method, id, parameters) }
      engine.executeAndAnswer(entry.method, id, parameters, of: session, checksAccess: false)
    }
    if isDone { remove(entry) } else { chargeWork(of: entry) }
    return isDone
  }

  /// The steps that a request is expected to take, if it may take several turns; otherwise nil.
  private func steps(of entry: RequestBatch.Entry, _ parameters: Parameters) -> Int? {
    let bytes = Int(entry.length)
    guard engine.mayBeLong(entry.method, parameters, bytes: bytes) else { return nil }
    return engine.expectedSteps(of: entry.method, parameters, bytes: bytes)
  }

  /// Charges the user of a request for what its long work needs now.
  private mutating func chargeWork(of entry: RequestBatch.Entry) {
    let memory = engine.longWork.memory
    engine.charge(memory &- workMemory, forRequestsOf: entry.session)
    workMemory = memory
  }

  /// Ends the request that took several turns. Until now it was in the line of its connection, so that later requests
  /// waited.
  private mutating func didFinishLong(_ entry: RequestBatch.Entry, _ dispatcher: inout Dispatcher) {
    engine.charge(-workMemory, forRequestsOf: entry.session)
    workMemory = 0
    // It was in no line, and what it needed was charged to nobody.
    if entry.kind == .internal { return }
    remove(entry)
    if let session = engine.sessions[entry.session] { finishRequests(of: session) }
  }

  /// Removes a request that was executed from the line of its connection, or from what that left when it was closed.
  private func remove(_ entry: RequestBatch.Entry) {
    guard let session = engine.sessions[entry.session] else {
      return engine.charge(-entry.memory, forRequestsOf: entry.session)
    }
    Self.removeFromLine(entry, of: session)
    if session.isClosing { engine.recount(session) }
  }

  private static func removeFromLine(_ entry: RequestBatch.Entry, of session: Session) {
    session.line.remove(bytes: entry.memory, isRead: entry.kind != .logged)
  }

  /// Answers what is not a request to execute, when it is first in its line.
  private func answer(
    _ entry: RequestBatch.Entry, of batch: RequestBatch, _ session: Session, _ dispatcher: inout Dispatcher
  ) {
    switch entry.kind {
    case .array: dispatcher.begin(batch.array(entry), of: session)
    case .refused:
      let refusal = batch.refusal(entry)
      if let reason = refusal.endOfStream { return engine.endStream(of: session, reason: reason) }
      guard let id = refusal.id else { return engine.refuse(engine.makeReply(to: session, id: nil), refusal.error) }
      id.withUnsafeBytes { engine.refuse(engine.makeReply(to: session, id: $0), refusal.error) }
    case .logged, .waiting, .internal: assertionFailure("\(entry.kind) is executed")
    }
  }

  /// Ends the work on a connection after its requests of this batch were executed.
  private func finishRequests(of session: Session) {
    guard session.line.isEmpty, !session.isClosing else { return }
    engine.recount(session)
    if session.line.work == nil && session.line.array == nil { engine.finishWork(of: session) }
  }
}

extension Engine {
  /// Executes a request that its connection waited for, or refuses it because it could not be stored.
  fileprivate func executeOrRefuse(
    _ entry: RequestBatch.Entry, _ id: JSONView?, _ parameters: Parameters, _ session: Session, failure: String?
  ) {
    let isLogged = entry.kind == .logged
    // A watch that goes back to a former state would mislead its client.
    if isLogged, let failure, entry.method.isLogged || isAhead(parameters) {
      let error: FeedError = entry.method.isLogged ? .storageFailed(reason: failure) : .behind(reason: failure)
      guard let id else { return }
      let feed = parameters.member("feed")?.truncatedName
      return refuse(makeReply(to: session, id: id.text), error.naming(feed))
    }
    // A peer that stopped reading gets no answers. Its requests that change feeds are still executed.
    if !isLogged && session.input.isDeaf && !entry.method.isLogged { return }
    // A request that may only begin a history is treated as a read, also if it could not be stored: rules and feeds may have
    // changed since it was taken.
    executeAndAnswer(entry.method, id, parameters, of: session, checksAccess: !entry.method.isLogged)
  }
}
