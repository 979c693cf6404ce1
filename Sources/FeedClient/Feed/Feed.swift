import FeedSystem

/// A feed of a daemon, as an asynchronous sequence of updates.
///
///     for try await update in Feed("inbox") {
///       switch update.cause {
///       case .snapshot, .selection: show(update.mirror)
///       case .delta(let delta): animate(delta, update.mirror)
///       case .interrupted(let reason): grayOut(reason)
///       case .resumed: grayOut(nil)
///       }
///     }
///
/// Each iteration has its own connection and thread, which reads only when the loop asks for the next update. While the
/// body is busy, the daemon coalesces changes, so a slow body gets fewer, larger deltas. The sequence ends when its
/// task is cancelled. It throws a ``ClientError`` if the daemon refuses the watch or, without `reconnects`, if the
/// connection is lost.
public struct Feed: AsyncSequence, Sendable {
  public typealias Element = FeedUpdate
  public typealias Failure = ClientError

  private let options: WatchOptions
  private let path: String

  /// Creates a sequence of the updates of the feed `name`.
  /// - Parameters:
  ///   - socket: the path of the daemon's socket; see "Connecting and framing" in `Protocol/README.md` for the default.
  ///   - waits: whether to wait for the daemon and the feed before the first watch.
  ///   - reconnects: whether to reconnect after a lost connection.
  ///   - throttle: the minimum time between deltas in milliseconds.
  ///   - ids: whether deltas have the identities of deleted rows; see ``Delta/deletedIDs``.
  public init(
    _ name: String, socket: String? = nil, waits: Bool = true, reconnects: Bool = true, throttle: Int? = nil,
    ids: Bool = false, client: String = "swift"
  ) {
    var options = WatchOptions(feed: name)
    options.waits = waits
    options.reconnects = reconnects
    options.throttle = throttle
    options.ids = ids
    options.client = client
    self.options = options
    path = socket ?? SocketPath.clientDefault(.current)
  }

  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(handle: FeedHandle(path: path, options: options)) }

  /// One iteration, for one task.
  public struct AsyncIterator: AsyncIteratorProtocol {
    let handle: FeedHandle<FeedCourse>

    /// Returns the next update; nil if the task is cancelled.
    public mutating func next() async throws(ClientError) -> FeedUpdate? { try await handle.worker.next().get() }

    /// Returns the next update; nil if the task is cancelled.
    public mutating func next(isolation actor: isolated (any Actor)?) async throws(ClientError) -> FeedUpdate? {
      try await handle.worker.next().get()
    }
  }
}

/// Stops the iteration's thread when the iterator is released.
final class FeedHandle<Course: UpdateCourse>: Sendable {
  let worker: FeedWorker<Course>

  init(path: String, options: WatchOptions) { worker = FeedWorker(path: path, options: options) }

  deinit { worker.stop() }
}

/// An event of a ``Feed`` and the rows after it.
public struct FeedUpdate: Sendable {
  /// The event.
  public enum Cause: Sendable {
    /// All rows were received again: at the start, or because the watch could not resume.
    case snapshot
    /// Rows changed.
    case delta(Delta)
    /// The selection changed.
    case selection
    /// The daemon or the feed is not available, for this reason. The rows are the last known ones; the sequence
    /// retries.
    case interrupted(ClientError)
    /// The watch resumed after an interruption without missing anything.
    case resumed
  }

  public var cause: Cause
  /// The rows after the event; nil before the first snapshot is complete. Later updates do not change this value.
  public var mirror: Mirror?
}

/// The numbers of rows of a feed after every change; see ``Client/counts(of:)``.
///
/// Waits for the daemon and the feed, and reconnects, like ``Feed``. While the body of the loop is busy, changes are
/// coalesced. The sequence ends when its task is cancelled.
public struct CountSequence: AsyncSequence, Sendable {
  public typealias Element = FeedCounts
  public typealias Failure = ClientError

  let feed: String
  let path: String

  public func makeAsyncIterator() -> AsyncIterator {
    var options = WatchOptions(feed: feed)
    (options.elements, options.waits, options.reconnects, options.client) = (false, true, true, "swift")
    return AsyncIterator(handle: FeedHandle(path: path, options: options))
  }

  /// One iteration, for one task.
  public struct AsyncIterator: AsyncIteratorProtocol {
    let handle: FeedHandle<CountCourse>

    /// Returns the next numbers; nil if the task is cancelled.
    public mutating func next() async throws(ClientError) -> FeedCounts? { try await handle.worker.next().get() }

    /// Returns the next numbers; nil if the task is cancelled.
    public mutating func next(isolation actor: isolated (any Actor)?) async throws(ClientError) -> FeedCounts? {
      try await handle.worker.next().get()
    }
  }
}
