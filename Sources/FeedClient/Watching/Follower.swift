import FeedJSON
import FeedSystem

/// Follows one feed over as many connections as it takes: a ``Watcher`` that has a socket, a clock and, if wanted, a
/// mirror.
///
/// It never waits: a program polls ``descriptor`` for ``interest`` until ``deadline`` and then calls ``advance(_:)``,
/// which does what can be done and gives out what happened, in order. For one thread at a time.
public final class Follower {
  /// What happened.
  public enum Event {
    /// The daemon or the feed is not there, for this reason; the next attempt comes by itself.
    case waiting(ClientError)
    /// A watch has begun.
    case started(WatchStart)
    /// The daemon said something about the feed, or goodbye, and it is in the mirror now; a delta comes decoded if
    /// there is a mirror. Valid until the handler returns.
    case notification(Notification, Delta?)
    /// A request sent through ``request(_:params:)`` was answered. Valid until the handler returns.
    case response(id: Int, Result<JSONView, RemoteError>)
  }

  /// What the handler of an event wants next.
  public enum Verdict: Sendable {
    case proceed
    /// Return from ``advance(_:)`` at once; the rest is kept for the next call.
    case pause
  }

  public typealias Handler = (Event) throws(ClientError) -> Verdict

  let path: String
  let keepsMirror: Bool
  var watcher: Watcher
  var connection: Connection?
  /// The request of the watcher that is not answered yet.
  var pendingID: Int?
  var restsUntil: UInt64?
  private var hasStarted = false
  private var isPaused = false
  /// The rows, when they are wanted and known: a watch that went on from the position of an earlier process has none
  /// before the daemon starts it over.
  public internal(set) var mirror: Mirror?

  /// A follower that has not connected yet.
  /// - Parameters:
  ///   - path: the daemon's socket.
  ///   - keepsMirror: whether to keep the rows.
  public init(path: String, options: WatchOptions, keepsMirror: Bool) {
    self.path = path
    self.keepsMirror = keepsMirror
    watcher = Watcher(options)
  }

  /// To be polled; nil while there is no connection.
  public var descriptor: Int32? { connection?.descriptor }

  /// What to poll ``descriptor`` for.
  public var interest: Readiness { connection?.hasOutput == true ? [.readable, .writable] : .readable }

  /// When to call ``advance(_:)`` although nothing is ready, in nanoseconds of ``MonotonicClock``; 0 is at once.
  public var deadline: UInt64? { isPaused || !hasStarted ? 0 : restsUntil }

  /// How far the watch is; nil before it has begun.
  public var progress: WatchProgress? { watcher.progress }

  /// Where a later watch may go on.
  public var position: FeedPosition? { watcher.position }

  /// Whether a watch is under way.
  public var isWatching: Bool { watcher.isWatching }

  /// Sends a request of the caller's own over the connection of the watch; its answer is an event.
  /// - Returns: its id; nil when there is no watch under way.
  public func request(_ method: String, params: (inout ByteBuffer) -> Void) throws(ClientError) -> Int? {
    guard let connection, watcher.isWatching else { return nil }
    let id = connection.send(method, params: params)
    try connection.flush()
    return id
  }

  /// Does what can be done without waiting, up to a buffer's worth of messages.
  /// - Throws: what ends the watch for good, or what the handler throws.
  public func advance(_ handle: Handler) throws(ClientError) {
    if !hasStarted {
      hasStarted = true
      try perform(.connect, handle)
    }
    if let end = restsUntil, MonotonicClock.now >= end {
      restsUntil = nil
      try perform(watcher.rested(), handle)
    }
    do throws(ClientError) {
      try read(handle)
    } catch {
      guard case .closed = error else { throw error }
      connection = nil
      try perform(watcher.lost(error), cause: error, handle)
    }
  }

  private func read(_ handle: Handler) throws(ClientError) {
    try connection?.flush()
    // What was left when a handler paused comes before anything new.
    if isPaused, try drain(handle) == .pause { return }
    if let connection, try connection.fill() { _ = try drain(handle) }
    try connection?.flush()
  }

  private func drain(_ handle: Handler) throws(ClientError) -> Verdict {
    isPaused = false
    while let connection, let message = try connection.next() {
      if try take(message, handle) == .pause {
        isPaused = true
        return .pause
      }
    }
    return .proceed
  }
}
