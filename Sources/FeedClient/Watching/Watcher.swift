import FeedSystem
import Glibc

public struct WatchOptions: Equatable, Sendable {
  public var feed: String
  /// The position of an earlier watch to resume from; nil starts with a snapshot.
  public var since: FeedPosition?
  /// Whether a watch that does not resume starts with a snapshot.
  public var initial = true
  /// Whether the daemon sends rows. If not, it sends the number of rows of each section; see ``FeedCounts``.
  public var elements = true
  /// Whether the daemon may send rows of several sections in one part of a snapshot, which saves a message for each section.
  /// A ``Mirror`` takes both. Set it to false for a reader of the notifications that expects parts within sections.
  public var spanning = true
  /// Whether deltas have the identities of deleted rows; see ``Delta/deletedIDs``. After a connection that the daemon closed
  /// because of a quota, they have none.
  public var ids = false
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

/// A watch over a series of connections, as a pure state machine: it receives events and returns the next action. It
/// has no socket, clock or rows; ``Follower`` has.
///
/// While the feed is not defined, the watcher watches `$feeds` on the same connection, and requests the watch again
/// when the feed appears there. Only connecting is retried.
public struct Watcher: Sendable {
  public enum Action: Equatable, Sendable {
    /// Connect to the daemon, then call ``connected()`` or ``failedToConnect(_:)``.
    case connect
    /// Send `hello`, then call ``greeted()`` or ``refused(_:)``.
    case sendHello
    /// Send `watch`, then call ``started(_:)`` or ``refused(_:)``.
    case sendWatch(since: FeedPosition?, initial: Bool)
    /// Send `watch` for `$feeds` without a snapshot, then call ``startedList()`` or ``refused(_:)``. Call ``listed()``
    /// when a notification contains the feed or its collection.
    case watchList
    case unwatchList
    /// Close the connection and wait this many nanoseconds, then call ``rested()``.
    case rest(UInt64)
    case read
    case fail(ClientError)
  }

  private enum State: Equatable, Sendable {
    case connecting, greeting, asking
    /// Waiting for the response to the watch of `$feeds`.
    case askingForList
    /// Waiting until `$feeds` contains the feed.
    case waiting
    case watching
    /// Waiting before the next connection.
    case resting
    case ended
  }

  public let options: WatchOptions
  private var state = State.connecting
  private var backoff = Backoff(first: 50_000_000, longest: 5_000_000_000)
  /// The `since` of the current watch.
  private var asked: FeedPosition?
  /// Whether `$feeds` is watched on this connection.
  private var followsList = false
  /// Whether `$feeds` reported the feed since the last `watch` was sent.
  private var wasListed = false
  /// Whether a watch has started at least once.
  private var hasBegun = false
  /// The progress of the watch; nil before the first start.
  public private(set) var progress: WatchProgress?

  public init(_ options: WatchOptions) { self.options = options }

  /// The position from which a later watch can resume; nil before the first complete state.
  public var position: FeedPosition? { progress.map(\.position) ?? options.since }

  public mutating func connected() -> Action {
    state = .greeting
    return .sendHello
  }

  public mutating func failedToConnect(_ error: ClientError) -> Action {
    guard case .noDaemon(let cause) = error, cause.code != EACCES, cause.code != ENOTSOCK, isPatient else {
      return fail(error)
    }
    return rest()
  }

  /// Records the response to `hello`.
  public mutating func greeted() -> Action { ask() }

  /// Records the response to `watch`.
  public mutating func started(_ start: WatchStart) -> Action {
    guard start.feed == options.feed else { return fail(.fault(.foreign(start.feed))) }
    let initial = asksForSnapshot
    if progress == nil {
      progress = WatchProgress(start, since: asked, initial: initial)
    } else {
      progress?.restart(start, initial: initial)
    }
    state = .watching
    hasBegun = true
    backoff.reset()
    defer { followsList = false }
    return followsList ? .unwatchList : .read
  }

  /// Records the response to the watch of `$feeds`. The feed may have been defined meanwhile.
  public mutating func startedList() -> Action {
    followsList = true
    return ask()
  }

  /// Records that `$feeds` reported the feed as added or changed.
  public mutating func listed() -> Action {
    if state == .waiting { return ask() }
    wasListed = true
    return .read
  }

  /// Records that `hello` or `watch` was refused.
  public mutating func refused(_ error: RemoteError) -> Action {
    guard state == .asking, isPatient else { return fail(.refused(error)) }
    switch error.code {
    case RemoteError.unknownFeed: return awaitFeed()
    // A member of a group that reaches the position later.
    case RemoteError.storageFailed: return rest()
    default: return fail(.refused(error))
    }
  }

  public mutating func lost(_ error: ClientError) -> Action {
    guard case .closed = error, isPatient else { return fail(error) }
    return rest()
  }

  /// Records that the feed was undefined, after its last delta.
  public mutating func ended() -> Action {
    let reason = RemoteError(code: RemoteError.unknownFeed, message: "feed \"\(options.feed)\" was undefined")
    return isPatient ? awaitFeed() : fail(.refused(reason))
  }

  public mutating func rested() -> Action {
    state = .connecting
    return .connect
  }

  public mutating func took(snapshot revision: UInt64, isReset: Bool, isLast: Bool) throws(FeedFault) {
    try progress?.record(snapshot: revision, isReset: isReset, isLast: isLast)
  }

  public mutating func took(deltaFrom from: UInt64, to revision: UInt64) throws(FeedFault) {
    try progress?.record(deltaFrom: from, to: revision)
  }

  public mutating func took(_ bookmark: Bookmark) throws(FeedFault) { try progress?.record(bookmark) }

  /// Whether messages about the feed are expected.
  public var isWatching: Bool { state == .watching }
  /// Whether `$feeds` is watched on this connection.
  var isFollowingList: Bool { followsList }
  /// Whether the next response is that of `watch` for `$feeds`.
  var isAskingForList: Bool { state == .askingForList }
  /// Whether the next response is that of `hello`.
  var isGreeting: Bool { state == .greeting }
  /// Whether to retry after a failure.
  private var isPatient: Bool { hasBegun ? options.reconnects : options.waits }

  /// Whether to request the watch with a snapshot. A watch that cannot resume always gets one, because it would miss
  /// changes otherwise. A watch of counts needs none.
  public var asksForSnapshot: Bool { options.elements && (options.initial || asked != nil) }

  private mutating func ask() -> Action {
    state = .asking
    wasListed = false
    asked = position
    return .sendWatch(since: asked, initial: asksForSnapshot)
  }

  private mutating func awaitFeed() -> Action {
    guard followsList else {
      state = .askingForList
      return .watchList
    }
    if wasListed { return ask() }
    state = .waiting
    return .read
  }

  private mutating func rest() -> Action {
    state = .resting
    followsList = false
    return .rest(backoff.next())
  }

  private mutating func fail(_ error: ClientError) -> Action {
    state = .ended
    return .fail(error)
  }
}
