import FeedJSON
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
  public enum Cause: Sendable {
    /// All rows were received again: at the start, or because the watch could not resume.
    case snapshot
    case delta(Delta)
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

/// Converts the events of a follower to updates, one at a time.
protocol UpdateCourse: SendableMetatype {
  associatedtype Update: Sendable
  init()
  /// Whether updates need the rows.
  static var keepsMirror: Bool { get }
  /// Returns the next update; nil if there is none yet.
  mutating func next(of follower: Follower) throws(ClientError) -> Update?
}

/// The thread of one iteration of a ``Feed`` or a ``CountSequence``. It works only while a task waits for the next update.
final class FeedWorker<Course: UpdateCourse>: Sendable {
  typealias Answer = Result<Course.Update?, ClientError>

  private struct State {
    var waiting: [CheckedContinuation<Answer, Never>] = []
    var isStopped = false
  }

  private let path: String
  private let options: WatchOptions
  private let thread = WorkerThread("feed")
  private let state = Guarded(State())

  init(path: String, options: WatchOptions) { (self.path, self.options) = (path, options) }

  /// Returns the next update; nil if the task is cancelled or the iteration has ended.
  func next() async -> Answer {
    let received = await withTaskCancellationHandler {
      await withCheckedContinuation { waiter in
        let isOver = state.withLock { state in
          if !state.isStopped { state.waiting.append(waiter) }
          return state.isStopped
        }
        if isOver { return waiter.resume(returning: .success(nil)) }
        start()
      }
    } onCancel: {
      stop()
    }
    #if THREAD_SANITIZER
      // Shows the sanitizer that the work of the thread is done before the task resumes.
      state.withLock { _ in }
    #endif
    return received
  }

  /// Ends the iteration: waiting tasks get nil, and the thread ends.
  func stop() {
    let waiting = state.withLock { state in
      state.isStopped = true
      defer { state.waiting = [] }
      return state.waiting
    }
    for waiter in waiting { waiter.resume(returning: .success(nil)) }
    thread.wake()
  }

  private var isStopped: Bool { state.withLock { $0.isStopped } }

  private func start() {
    do throws(ClientError) {
      try thread.wake { self.run() }
    } catch {
      answer(.failure(error))
      return stop()
    }
  }

  private func answer(_ answer: Answer) {
    let waiter = state.withLock { $0.waiting.isEmpty ? nil : $0.waiting.removeFirst() }
    waiter?.resume(returning: answer)
  }

  private func run() {
    let follower = Follower(path: path, options: options, keepsMirror: Course.keepsMirror)
    var course = Course()
    while !isStopped {
      let isWanted = state.withLock { !$0.waiting.isEmpty }
      do throws(ClientError) {
        if isWanted, let update = try course.next(of: follower) {
          answer(.success(update))
        } else {
          let follower = isWanted ? follower : nil
          try thread.wait(for: follower?.descriptor, follower?.interest ?? .readable, until: follower?.deadline)
        }
      } catch {
        answer(.failure(error))
        return stop()
      }
    }
  }
}

struct FeedCourse: UpdateCourse {
  static let keepsMirror = true
  private var isInterrupted = false

  mutating func next(of follower: Follower) throws(ClientError) -> FeedUpdate? {
    var cause: FeedUpdate.Cause?
    try follower.advance { event throws(ClientError) in
      cause = self.cause(of: event)
      return cause == nil ? .proceed : .pause
    }
    return cause.map { FeedUpdate(cause: $0, mirror: follower.mirror.flatMap { $0.isShown ? $0 : nil }) }
  }

  private mutating func cause(of event: Follower.Event) -> FeedUpdate.Cause? {
    switch event {
    case .waiting(let reason):
      // Only the first of several failed attempts is reported.
      defer { isInterrupted = true }
      return isInterrupted ? nil : .interrupted(reason)
    case .started(let start):
      defer { isInterrupted = false }
      return isInterrupted && start.resumed ? .resumed : nil
    case .notification(let notification, _) where notification.kind == .snapshot:
      return notification.params.member("last")?.bool == true ? .snapshot : nil
    case .notification(let notification, _) where notification.kind == .selection: return .selection
    case .notification(_, let delta?): return .delta(delta)
    case .notification, .response: return nil
    }
  }
}

struct CountCourse: UpdateCourse {
  static let keepsMirror = false
  private var last: FeedCounts?

  mutating func next(of follower: Follower) throws(ClientError) -> FeedCounts? {
    let last = last
    try follower.advance { _ throws(ClientError) in follower.counts == last ? .proceed : .pause }
    guard let counts = follower.counts, counts != last else { return nil }
    self.last = counts
    return counts
  }
}
