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

  /// Lets the next delta of a watch go without waiting for its throttle.
  private let hurry: (Watch) -> Void

  init(_ session: Session, revision: UInt64, hurry: @escaping (Watch) -> Void) {
    self.hurry = hurry
    self.revision = revision
    targets = session.watches.map { ($0, $0.channel.feed.revision) }
  }

  func advance(budget: Int) throws(FeedError) -> Bool {
    var ready = true
    for (watch, target) in targets where !watch.isEnded && (watch.isSnapshotting || watch.revision < target) {
      hurry(watch)
      ready = false
    }
    return ready
  }

  func appendResult(to out: inout ByteBuffer) {
    out.append("\"revision\":")
    out.append(integer: revision)
  }
}
