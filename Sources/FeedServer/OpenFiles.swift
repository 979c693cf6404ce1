import FeedJSON
import FeedModel
import FeedSystem

/// Divides the files that the process may open between connections and the rest of the daemon.
///
/// If the limit of open files cannot be raised to what all need, fewer connections are allowed than `maxConnections`, so that
/// descriptors remain for the reserved connections, for the store and for managed databases.
struct OpenFiles {
  /// The number of descriptors that are not connections: standard streams, the listener, the event queue, the store.
  private static let others = 32
  /// The descriptors of one managed feed: its thread's event, the database, its log, index and journal.
  private static let perManagedFeed = 6

  /// `maxConnections` as it was configured.
  let maxConnections: Int
  private let reserved: Int
  private let raise: (_ wanted: Int) -> Int

  /// - Parameter raise: raises the limit of open files, and returns it; tests pass their own.
  init(_ limits: Limits, raise: @escaping (_ wanted: Int) -> Int = { OpenFileLimit.raise(to: $0) }) {
    maxConnections = limits.maxConnections
    reserved = limits.reservedConnections
    self.raise = raise
  }

  /// Returns how many connections are allowed beside so many managed feeds, and the reason if these are fewer than configured.
  func connections(managedFeeds: Int) -> (allowed: Int, shortage: String?) {
    let rest = Self.others + reserved + managedFeeds * Self.perManagedFeed
    let wanted = maxConnections + rest
    let possible = raise(wanted)
    guard possible < wanted else { return (maxConnections, nil) }
    let allowed = max(possible - rest, 1)
    return (
      allowed,
      "only \(grouped(possible)) files may be open and \(counted(maxConnections, "connection")) want \(grouped(wanted)): "
        + "maxConnections is \(grouped(allowed)); raise the limit (LimitNOFILE), or lower --max-connections"
    )
  }
}
