import FeedEngine
import FeedModel
import FeedStorage

extension EventLoop {
  /// Stores what the turn's requests may change, before any of them is executed. When it cannot be stored, those requests are
  /// refused and the rest goes on; the next turn tries again.
  mutating func storeTurn(_ store: Store) {
    engine.beginTurn(now: now)
    for input in inputs where input.slot.isOpen { engine.prepare(input.slot.pointee.id, bytes(of: input)) }
    guard let batch = engine.journalBatch else { return engine.didStore() }
    do throws(StorageError) {
      try store.append(revision: batch.revision, at: batch.at.nanoseconds, requests: batch.requests)
      engine.didStore()
      if let report = health.didStore() {
        log.write(.notice, report.line)
        service.tell(.status(report.status))
      }
    } catch {
      engine.storageDidFail(error.description)
      if let report = health.didFail(error.description) {
        log.write(.error, report.line)
        service.tell(.status(report.status))
      }
    }
  }

  /// Lets the store do its work in the background: after the turn's bytes are written, and while nothing else happens.
  func workOnStore(isBusy: Bool) {
    guard let store else { return }
    if store.wantsImage { store.beginImage(engine.catalog.makeImage()) }
    if store.hasWork { store.work(isBusy: isBusy) }
  }

  /// When the store may want to work next although nothing has happened.
  var nextStoreMoment: Instant? {
    store?.pauseLeft.map { now.adding(nanoseconds: $0) }
  }
}
