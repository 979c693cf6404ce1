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
      if failedBatches > 0 {
        log.write(.notice, "\(store.path): storing works again; \(failedBatches) batches were refused meanwhile")
        tell(.status("listening, storing works again"))
        failedBatches = 0
      }
    } catch {
      engine.storageDidFail(error.description)
      if failedBatches == 0 {
        log.write(.error, "\(error); changes are refused until it works again, reading goes on")
        tell(.status("storing fails: \(error)"))
      }
      failedBatches &+= 1
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
