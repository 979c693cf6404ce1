import FeedEngine
import FeedModel
import FeedStorage
import FeedSystem

/// Fills an engine from the store, and says from time to time how far it is.
final class EngineRecovery: RecoveryTarget {
  private let engine: Engine
  private let report: (RecoveryProgress) -> Void
  private var nextReport: UInt64

  /// Nanoseconds between two reports.
  private static let interval: UInt64 = 2_000_000_000

  init(_ engine: Engine, report: @escaping (RecoveryProgress) -> Void) {
    self.engine = engine
    self.report = report
    nextReport = MonotonicClock.now &+ Self.interval
  }

  var catalog: Catalog { engine.catalog }

  func adopt(_ limits: Limits) { engine.adopt(limits) }

  func replay(_ batch: StoredBatch) throws(ReplayRefusal) {
    do {
      try engine.replay(
        LogBatch(
          number: 0, at: Instant(nanoseconds: batch.at), revision: batch.revision, frames: batch.requests))
    } catch ReplayError.revisionMismatch(let stored, let reached) {
      throw ReplayRefusal("it was made on revision \(stored), and the state before it is of revision \(reached)")
    } catch {
      throw ReplayRefusal("\(error)")
    }
  }

  func didRecover(_ progress: RecoveryProgress) {
    guard MonotonicClock.now >= nextReport else { return }
    nextReport = MonotonicClock.now &+ Self.interval
    report(progress)
  }
}
