import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// Executes batches that the log has stored, and refuses batches that it could not store.
struct Completion: ~Copyable {
  private let engine: Engine
  /// The number of batches refused since the last stored one, and the reason.
  private(set) var failedBatches = 0
  private(set) var failureReason = ""
  /// The reason why the log cannot determine what is stored.
  private(set) var lossReason: String?

  init(_ engine: Engine) {
    self.engine = engine
  }

  /// Executes batches that the log has stored, and refuses batches that it could not store.
  mutating func completeBatches(_ dispatcher: inout Dispatcher) {
    if dispatcher.commits.storesAtOnce { return }
    while let event = dispatcher.commits.log.nextEvent() {
      switch event {
      case .stored(let number):
        complete(&dispatcher, through: number, failure: nil)
        failedBatches = 0
      case .failed(let number, let reason):
        // The log reported all earlier batches as stored.
        assert(dispatcher.commits.first(through: number).map { $0.number == number } ?? true)
        failureReason = reason
        failedBatches &+= complete(&dispatcher, through: .max, failure: reason)
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
    if dispatcher.commits.isIdle && dispatcher.commits.open.count > 0 && dispatcher.commits.open.frames.isEmpty {
      executeWaiting(&dispatcher)
    }
  }

  @discardableResult
  private mutating func complete(_ dispatcher: inout Dispatcher, through number: UInt64, failure: String?) -> Int {
    var count = 0
    while let batch = dispatcher.commits.first(through: number) {
      assert(failure != nil || batch.revision.map { $0 == engine.catalog.revision } ?? true)
      execute(batch, &dispatcher, failure: failure)
      dispatcher.commits.removeFirst()
      count &+= 1
    }
    return count
  }

  /// Executes the requests of a batch in order. With `failure`, the requests that needed storing are refused.
  private mutating func execute(_ batch: RequestBatch, _ dispatcher: inout Dispatcher, failure: String?) {
    if batch.number > 0 { engine.time.moment = batch.at }
    var session: Session?
    for index in 0..<batch.count {
      let entry = batch[index]
      if entry.kind == .internal {
        engine.complete(batch.internalRequest(entry), failure: failure)
        continue
      }
      if session?.handle != entry.session {
        if let session { leave(session) }
        session = engine.sessions[entry.session]
      }
      if let open = session, !open.isClosing {
        execute(entry, of: batch, open, &dispatcher, failure: failure)
      } else if entry.kind == .logged, failure == nil {
        // The client is gone. Its stored requests are still executed.
        let (id, parameters) = batch.request(entry)
        engine.performSilently(entry.method, id, parameters)
      }
    }
    if let session { leave(session) }
    engine.time.moment = engine.now
  }

  private mutating func execute(
    _ entry: RequestBatch.Entry, of batch: RequestBatch, _ session: Session, _ dispatcher: inout Dispatcher,
    failure: String?
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
        // A request that may only begin a history is treated as a read if it could not be stored.
        engine.perform(entry.method, id, parameters, of: session, checksAccess: failure != nil)
      }
    case .waiting:
      // A peer that stopped reading gets no answers.
      if session.input.isDeaf { return }
      let (id, parameters) = batch.request(entry)
      engine.perform(entry.method, id, parameters, of: session, checksAccess: true)
    case .array: dispatcher.begin(batch.array(entry), of: session)
    case .refused:
      let refusal = batch.refusal(entry)
      if let reason = refusal.endOfStream { return engine.endStream(of: session, reason: reason) }
      refusal.id.withUnsafeBytes { id in
        engine.refuse(engine.makeReply(to: session, id: refusal.hasID ? id : nil), refusal.error)
      }
    case .internal: assertionFailure("requests of the daemon belong to no connection")
    }
  }

  /// Ends the work on a connection after its requests of this batch were executed.
  private mutating func leave(_ session: Session) {
    guard session.line.isEmpty, !session.isClosing else { return }
    engine.recount(session)
    if session.line.work == nil && session.line.batch == nil { engine.finishWork(of: session) }
  }

  /// Executes an open batch that has nothing to store.
  mutating func executeWaiting(_ dispatcher: inout Dispatcher) {
    let batch = dispatcher.commits.takeOpen()
    execute(batch, &dispatcher, failure: nil)
    dispatcher.commits.recycle(batch)
    dispatcher.resumeStalled()
  }
}
