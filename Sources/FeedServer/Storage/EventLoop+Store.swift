import FeedEngine
import FeedModel
import FeedStorage

extension EventLoop {
  /// Says when storing fails, and when it works again.
  mutating func reportHealth() {
    if let reason = turn.lossReason, !shutdown.isOver {
      log.write(.error, "\(reason); the daemon ends")
      return endDraining()
    }
    if turn.failedBatches == 0, let report = health.didStore() {
      log.write(.notice, report.line)
      service.tell(.status(report.status))
    }
    while health.failedBatches < turn.failedBatches {
      guard let report = health.didFail(turn.failureReason) else { continue }
      log.write(.error, report.line)
      service.tell(.status(report.status))
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
