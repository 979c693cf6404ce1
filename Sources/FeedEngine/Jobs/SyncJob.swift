import FeedChange
import FeedJSON
import FeedModel

/// `sync`: waits until every delta up to its revision has been queued to its connection.
final class SyncJob: Job {
  private let revision: UInt64
  /// The connection's watches and how far each must have come.
  private let targets: [(watch: Watch, revision: UInt64)]

  /// It is the watches that get on.
  let isWaiting = true

  init(_ session: Session, revision: UInt64) {
    self.revision = revision
    targets = session.watches.map { ($0, $0.channel.feed.revision) }
  }

  func advance(budget: Int) throws(FeedError) -> Bool {
    var ready = true
    for (watch, target) in targets where !watch.isEnded && (watch.isSnapshotting || watch.position < target) {
      watch.hurry()
      ready = false
    }
    return ready
  }

  func appendResult(to out: inout ByteBuffer) {
    out.append("\"revision\":")
    out.append(integer: revision)
  }
}
