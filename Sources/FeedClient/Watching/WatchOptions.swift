/// The options of a watch.
public struct WatchOptions: Equatable, Sendable {
  public var feed: String
  /// The position of an earlier watch to resume from; nil starts with a snapshot.
  public var since: FeedPosition?
  /// Whether a watch that does not resume starts with a snapshot.
  public var initial = true
  /// Whether the daemon sends rows. If not, it sends the number of rows of each section; see ``FeedCounts``.
  public var elements = true
  /// The minimum time between deltas in milliseconds; nil for the daemon's default.
  public var throttle: Int?
  /// Whether to wait for the daemon and the feed before the first watch.
  public var waits = false
  /// Whether to reconnect and resume after a lost connection.
  public var reconnects = false
  /// The client's name in the daemon's log and in `clients`.
  public var client = "feedclient"

  public init(feed: String) { self.feed = feed }
}
