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

  /// Writes an image, so that the next start has nothing to execute again, and closes the log. A signal to end gives the image
  /// up.
  mutating func closeStorage() {
    guard let storage else { return }
    var isToldToEnd = shutdown.isHurried
    // A batch in flight here waits for a disk that does not answer; so would the image.
    if !turn.awaitsLog && !isToldToEnd {
      let engine = engine
      var nextReport = clock.now
      storage.writeImage(executed: turn.executed, { engine.catalog.makeImage() }) {
        now = clock.now
        if now >= nextReport {
          nextReport = now.adding(seconds: 1)
          service.tell(.extendTimeout(.seconds(30)))
          service.attend(now: now)
        }
        while let request = try? signals.next() { if case .end = request { isToldToEnd = true } }
        return !isToldToEnd
      }
    }
    let patience: UInt64 = isToldToEnd ? 1 : 10
    service.tell(.extendTimeout(.seconds(Int64(patience) + 5)))
    storage.close(within: patience * 1_000_000_000)
  }
}
