import Glibc

/// The course of a watch over connections that come and go, as a pure state machine: it is told what happened and says
/// what to do next. Sockets, clocks and rows belong to others.
public struct Watcher: Sendable {
  /// What to do next.
  public enum Action: Equatable, Sendable {
    /// Connect to the daemon, then tell ``connected()`` or ``failedToConnect(_:)``.
    case connect
    /// Send `hello`, then tell ``greeted()`` or ``refused(_:)``.
    case sendHello
    /// Send `watch`, then tell ``started(_:)`` or ``refused(_:)``.
    case sendWatch(since: FeedPosition?, initial: Bool)
    /// Let so many nanoseconds pass, then tell ``rested()``.
    case rest(UInt64)
    /// Go on reading.
    case read
    /// It is over.
    case fail(ClientError)
  }

  private enum State: Equatable, Sendable {
    case connecting
    case greeting
    case asking
    case watching
    /// Resting; the flag says whether the connection still stands.
    case resting(connected: Bool)
    case ended
  }

  public let options: WatchOptions
  private var state = State.connecting
  private var backoff = Backoff()
  /// What the watch under way was asked to go on from.
  private var asked: FeedPosition?
  /// Whether a watch has begun at least once.
  private var hasBegun = false
  /// How far the watch is; nil before the first has begun.
  public private(set) var progress: WatchProgress?

  /// A watcher that begins by connecting.
  public init(_ options: WatchOptions) { self.options = options }

  /// Where a later watch may go on; nil when nothing is complete yet.
  public var position: FeedPosition? { progress.map(\.position) ?? options.since }

  /// A connection stands.
  public mutating func connected() -> Action {
    state = .greeting
    return .sendHello
  }

  /// Nobody answered.
  public mutating func failedToConnect(_ error: ClientError) -> Action {
    guard case .noDaemon(let cause) = error, cause.code != EACCES, cause.code != ENOTSOCK, isPatient else {
      return fail(error)
    }
    return rest(connected: false)
  }

  /// `hello` was answered.
  public mutating func greeted() -> Action { ask() }

  /// `watch` was answered.
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
    return .read
  }

  /// `hello` or `watch` was refused.
  public mutating func refused(_ error: RemoteError) -> Action {
    guard state == .asking, error.code == RemoteError.unknownFeed, isPatient else { return fail(.refused(error)) }
    return rest(connected: true)
  }

  /// The connection is lost, with the daemon's last word if there was one.
  public mutating func lost(_ error: ClientError) -> Action {
    guard case .closed = error, isPatient else { return fail(error) }
    return rest(connected: false)
  }

  /// The feed is gone; its last delta has emptied it.
  public mutating func ended() -> Action {
    let reason = RemoteError(
      code: RemoteError.unknownFeed, message: "Feed \"\(options.feed)\" was undefined, and the watch has ended with it."
    )
    return isPatient ? rest(connected: true) : fail(.refused(reason))
  }

  /// The rest is over.
  public mutating func rested() -> Action {
    if state == .resting(connected: true) { return ask() }
    state = .connecting
    return .connect
  }

  /// A part of a snapshot came.
  public mutating func took(snapshot revision: UInt64, isReset: Bool, isLast: Bool) throws(FeedFault) {
    try progress?.take(snapshot: revision, isReset: isReset, isLast: isLast)
  }

  /// A delta came.
  public mutating func took(deltaFrom from: UInt64, to revision: UInt64) throws(FeedFault) {
    try progress?.take(deltaFrom: from, to: revision)
  }

  /// A bookmark came.
  public mutating func took(_ bookmark: Bookmark) throws(FeedFault) {
    try progress?.take(bookmark)
  }

  /// Whether messages about the feed are expected.
  public var isWatching: Bool { state == .watching }

  /// Whether what comes next on the connection is the answer to `hello`.
  var isGreeting: Bool { state == .greeting }

  /// What did not work may be tried again.
  private var isPatient: Bool { hasBegun ? options.reconnects : options.waits }

  /// Who goes on from somewhere gets a snapshot when that turns out to be impossible, wanted at the start or not:
  /// without it the changes in between would be missing silently.
  public var asksForSnapshot: Bool { options.initial || asked != nil }

  private mutating func ask() -> Action {
    state = .asking
    asked = position
    return .sendWatch(since: asked, initial: asksForSnapshot)
  }

  private mutating func rest(connected: Bool) -> Action {
    state = .resting(connected: connected)
    return .rest(backoff.next())
  }

  private mutating func fail(_ error: ClientError) -> Action {
    state = .ended
    return .fail(error)
  }
}

/// How long to rest before the next attempt: twice as long after each failure, within bounds.
struct Backoff: Equatable, Sendable {
  /// 50 ms: a daemon that restarts is back in a few of these.
  static let first: UInt64 = 50_000_000
  /// 5 s: how long a daemon that comes back late stays unnoticed at most.
  static let longest: UInt64 = 5_000_000_000

  private var upcoming = Backoff.first

  /// The rest before the next attempt, in nanoseconds.
  mutating func next() -> UInt64 {
    defer { upcoming = min(upcoming * 2, Self.longest) }
    return upcoming
  }

  /// An attempt succeeded.
  mutating func reset() { upcoming = Self.first }
}
