import FeedSystem

/// A feed of a daemon, as an asynchronous sequence of what happens to it.
///
///     for try await update in Feed("inbox") {
///       switch update.cause {
///       case .snapshot: show(update.mirror)
///       case .delta(let delta): animate(delta.change, update.mirror)
///       case .selection: highlight(update.mirror?.selected)
///       case .interrupted(let reason): grayOut(reason)
///       case .resumed: ungray()
///       }
///     }
///
/// Each iteration has a connection and a thread of its own, which reads only when the loop asks for more: while the
/// body is busy the daemon puts changes together, so a slow body sees fewer and larger deltas and never falls behind
/// for good. The sequence ends when its task is cancelled, and throws a ``ClientError`` when the daemon refuses, or,
/// without `reconnects`, when the connection is lost.
public struct Feed: AsyncSequence, Sendable {
  public typealias Element = FeedUpdate
  public typealias Failure = ClientError

  private let options: WatchOptions
  private let path: String

  /// The feed `name` of the daemon at `socket`; without one, where clients look for the daemon (protocol, section 1).
  /// - Parameters:
  ///   - waits: whether to wait for the daemon and the feed at first.
  ///   - reconnects: whether to connect again when the connection is lost.
  ///   - throttle: the least time between deltas in milliseconds.
  public init(
    _ name: String, socket: String? = nil, waits: Bool = true, reconnects: Bool = true, throttle: Int? = nil,
    client: String = "swift"
  ) {
    var options = WatchOptions(feed: name)
    options.waits = waits
    options.reconnects = reconnects
    options.throttle = throttle
    options.client = client
    self.options = options
    path = socket ?? SocketPath.clientDefault(.current)
  }

  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(handle: FeedHandle(path: path, options: options)) }

  /// One iteration, for one task.
  public struct AsyncIterator: AsyncIteratorProtocol {
    let handle: FeedHandle

    /// What happens next; nil once the task is cancelled.
    public mutating func next() async throws(ClientError) -> FeedUpdate? { try await handle.worker.next().get() }

    /// What happens next; nil once the task is cancelled.
    public mutating func next(isolation actor: isolated (any Actor)?) async throws(ClientError) -> FeedUpdate? {
      try await handle.worker.next().get()
    }
  }
}

/// Ends the iteration's thread when nobody holds the iterator any more.
final class FeedHandle: Sendable {
  let worker: FeedWorker

  init(path: String, options: WatchOptions) { worker = FeedWorker(path: path, options: options) }

  deinit { worker.stop() }
}

/// What a ``Feed`` gives: something that happened, and the rows as they are after it.
public struct FeedUpdate: Sendable {
  /// What happened.
  public enum Cause: Sendable {
    /// All rows came anew: at the start, and when the daemon could not go on from where this copy was.
    case snapshot
    /// Rows changed.
    case delta(Delta)
    /// Other rows are selected.
    case selection
    /// The daemon, or the feed, is not there, for this reason. The rows are the last known ones; attempts go on.
    case interrupted(ClientError)
    /// The watch goes on after an interruption, and nothing was missed.
    case resumed
  }

  public var cause: Cause
  /// The rows; nil before the first snapshot is complete. A copy: it does not change, and costs little until the feed
  /// does.
  public var mirror: Mirror?
}
