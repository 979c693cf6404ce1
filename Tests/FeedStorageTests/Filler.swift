import FeedEngine
import FeedModel
import FeedStorage

/// Fills an engine from a store.
final class Filler: RecoveryTarget {
  private let engine: Engine

  init(_ engine: Engine) {
    self.engine = engine
  }

  var catalog: Catalog { engine.catalog }
  func adopt(_ limits: Limits) { engine.adopt(limits) }
  func didRecover(_ progress: RecoveryProgress) {}

  func replay(_ batch: StoredBatch) throws(ReplayRefusal) {
    do throws(ReplayError) {
      try engine.replay(
        LogBatch(
          number: 0, at: Instant(nanoseconds: batch.at), revision: batch.revision, frames: batch.requests))
    } catch {
      throw ReplayRefusal("\(error)")
    }
  }
}
