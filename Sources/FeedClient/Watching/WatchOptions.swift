/// What a watcher wants and how it behaves when it does not get it.
public struct WatchOptions: Equatable, Sendable {
  public var feed: String
  /// Where to go on, from an earlier watch; nil begins with a snapshot.
  public var since: FeedPosition?
  /// Whether a watch that does not go on from somewhere begins with a snapshot.
  public var initial = true
  /// The least time between deltas, in milliseconds; nil leaves it to the daemon.
  public var throttle: Int?
  /// Whether to wait for the daemon and for the feed to be there at first.
  public var waits = false
  /// Whether to connect again, and go on, when the connection is lost after the watch had begun.
  public var reconnects = false
  /// The name that the daemon's log and `clients` show.
  public var client = "feedclient"

  public init(feed: String) { self.feed = feed }
}
