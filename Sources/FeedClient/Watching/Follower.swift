import FeedChange
import FeedJSON
import FeedSystem

/// Follows one feed and reconnects as needed: a ``Watcher`` with a socket, a clock and an optional mirror.
///
/// Does not block: poll ``descriptor`` for ``interest`` until ``deadline``, then call ``advance(_:)``, which reports
/// the events in order. Not thread-safe.
public final class Follower {
  public enum Event {
    /// The daemon or the feed is not available, for this reason. The follower retries.
    case waiting(ClientError)
    case started(WatchStart)
    /// A notification about the feed, or `bye`. The mirror has already applied it; if there is a mirror, a delta is
    /// decoded. Valid until the handler returns.
    case notification(Notification, Delta?)
    /// A request sent through ``request(_:params:)`` was answered. Valid until the handler returns.
    case response(id: Int, Result<JSONView, RemoteError>)
  }

  /// The return value of the handler of an event.
  public enum Verdict: Sendable {
    case proceed
    /// Return from ``advance(_:)`` immediately. Later events wait for the next call.
    case pause
  }

  /// Handles one event, and returns whether ``advance(_:)`` continues with the next one.
  public typealias Handler = (Event) throws(ClientError) -> Verdict

  private let path: String
  private let keepsMirror: Bool
  private var watcher: Watcher
  private var connection: Connection?
  /// The id of the watcher's unanswered request.
  private var pendingID: Int?
  /// The id of the unanswered `unwatch` of `$feeds`. Its response is ignored.
  private var unwatchID: Int?
  private var restsUntil: UInt64?
  private var hasStarted = false
  private var isPaused = false
  /// Whether the handler paused at the notification that ended the feed. The end is an event of its own.
  private var hasEnded = false
  /// Whether the daemon closed a connection because of a quota. The identities of a long feed take much of it, so later watches do
  /// not ask for them.
  private var isOverQuota = false
  /// The rows, if they are requested and known. A watch that resumed from a position of an earlier process has none
  /// until the daemon sends a snapshot.
  public private(set) var mirror: Mirror?
  /// The numbers of rows; nil unless the watch requested counts and has started.
  public private(set) var counts: FeedCounts?

  /// Creates a follower that has not connected yet.
  public init(path: String, options: WatchOptions, keepsMirror: Bool) {
    (self.path, self.keepsMirror) = (path, keepsMirror)
    watcher = Watcher(options)
  }

  /// The descriptor to poll; nil without a connection.
  public var descriptor: Int32? { connection?.descriptor }
  /// The events to poll ``descriptor`` for.
  public var interest: Readiness { connection?.interest ?? .readable }
  /// The time to call ``advance(_:)`` if nothing is ready, in nanoseconds of ``MonotonicClock``; 0 means immediately.
  public var deadline: UInt64? { isPaused || !hasStarted ? 0 : restsUntil }
  /// Nil before the watch has started.
  public var progress: WatchProgress? { watcher.progress }
  /// The position from which a later watch can resume.
  public var position: FeedPosition? { watcher.position }
  /// Whether the last watch was requested with a snapshot, unless it resumes.
  public var asksForSnapshot: Bool { watcher.asksForSnapshot }

  public var isWatching: Bool { watcher.isWatching && !hasEnded }

  /// Sends another request over the connection of the watch. Its response is reported as an event.
  /// - Returns: the id; nil while the watch is not running.
  public func request(_ method: String, params: (inout ByteBuffer) -> Void) throws(ClientError) -> Int? {
    guard let connection, isWatching else { return nil }
    let id = connection.send(method, params: params)
    try connection.flush()
    return id
  }

  /// Processes available messages, up to the size of a buffer, without blocking.
  /// - Throws: the error that ends the watch, or an error of the handler.
  public func advance(_ handle: Handler) throws(ClientError) {
    if !hasStarted {
      hasStarted = true
      try perform(.connect, handle)
    }
    // The next events wait for the next call, because the handler may pause at this one.
    if hasEnded { return try end(handle) }
    if let end = restsUntil, MonotonicClock.now >= end {
      restsUntil = nil
      try perform(watcher.rested(), handle)
    }
    do throws(ClientError) {
      try read(handle)
    } catch {
      guard case .closed(let bye) = error else { throw error }
      if bye?.reason == "quota" { isOverQuota = true }
      try perform(watcher.lost(error), cause: error, handle)
    }
  }

  private func read(_ handle: Handler) throws(ClientError) {
    try connection?.flush()
    // Messages that a paused handler left are processed first.
    if isPaused, try drain(handle) == .pause { return }
    if let connection, try connection.fill() { _ = try drain(handle) }
    try connection?.flush()
  }

  private func drain(_ handle: Handler) throws(ClientError) -> Verdict {
    isPaused = false
    while let connection, let message = try connection.next() {
      if try process(message, handle) == .pause {
        isPaused = true
        return .pause
      }
    }
    return .proceed
  }
}

extension Follower {
  private func perform(_ action: Watcher.Action, cause: ClientError? = nil, _ handle: Handler) throws(ClientError) {
    let options = watcher.options
    switch action {
    case .connect: try connect(handle)
    case .sendHello:
      pendingID = connection?.send("hello") { Connection.appendHello(client: options.client, to: &$0) }
      try connection?.flush()
    case .sendWatch(let since, let initial):
      let ids = options.ids && !isOverQuota
      pendingID = connection?.send("watch") { options.appendWatch(since: since, initial: initial, ids: ids, to: &$0) }
      try connection?.flush()
    case .watchList:
      pendingID = connection?.send("watch") { $0.append(string: "{\"feed\":\"\(FeedName.feeds)\",\"initial\":false}") }
      try connection?.flush()
      if let cause { _ = try handle(.waiting(cause)) }
    case .unwatchList:
      unwatchID = connection?.send("unwatch") { $0.append(string: "{\"feed\":\"\(FeedName.feeds)\"}") }
      try connection?.flush()
    case .rest(let nanoseconds):
      connection = nil
      unwatchID = nil
      restsUntil = MonotonicClock.now &+ nanoseconds
      _ = try handle(.waiting(cause ?? .closed(nil)))
    case .read: return
    case .fail(let error):
      connection = nil
      throw error
    }
  }

  private func connect(_ handle: Handler) throws(ClientError) {
    do throws(ClientError) {
      connection = try Connection.open(path: path, timeout: .seconds(1))
    } catch {
      return try perform(watcher.failedToConnect(error), cause: error, handle)
    }
    try perform(watcher.connected(), handle)
  }

  /// Starts a watch after the response of the daemon.
  private func begin(_ start: WatchStart, _ handle: Handler) throws(ClientError) -> Verdict {
    let action = watcher.started(start)
    if watcher.options.elements {
      if keepsMirror { beginMirror(start) }
    } else {
      counts = FeedCounts(start)
    }
    try perform(action, handle)
    return try handle(.started(start))
  }

  private func beginMirror(_ start: WatchStart) {
    if mirror != nil {
      mirror?.restart(start)
    } else if !start.resumed, watcher.asksForSnapshot || start.sections.allSatisfy({ $0.count == 0 }) {
      mirror = Mirror(start, initial: watcher.asksForSnapshot)
    }
  }
}

extension WatchOptions {
  fileprivate func appendWatch(since: FeedPosition?, initial: Bool, ids: Bool, to params: inout ByteBuffer) {
    params.append("{\"feed\":", quoted: feed)
    if let since {
      params.append(",\"since\":{\"epoch\":", quoted: since.epoch)
      params.append(",\"revision\":", integer: since.revision)
      params.append("}")
    }
    if !initial { params.append(",\"initial\":false") }
    if !elements { params.append(",\"elements\":false") }
    if elements && spanning { params.append(",\"spanning\":true") }
    if elements && ids { params.append(",\"ids\":true") }
    if let throttle { params.append(",\"throttle\":", integer: throttle) }
    params.append("}")
  }
}

extension Follower {
  private func process(_ message: Message, _ handle: Handler) throws(ClientError) -> Verdict {
    switch message {
    // An error without an id means that the daemon could not parse the request.
    case .response(let id, let result) where id == pendingID || id == 0:
      pendingID = nil
      return try handleAnswer(result, handle)
    case .response(let id, _) where id == unwatchID:
      unwatchID = nil
      return .proceed
    case .response(let id, let result): return try handle(.response(id: id, result))
    case .notification(let notification) where watcher.isFollowingList && notification.concerns(FeedName.feeds):
      if notification.lists(watcher.options.feed) { try perform(watcher.listed(), handle) }
      return .proceed
    case .notification(let notification):
      guard notification.kind == .bye || notification.concerns(watcher.options.feed) else { return .proceed }
      guard watcher.isWatching || notification.kind == .bye else { return .proceed }
      let verdict = try handle(.notification(notification, try record(notification)))
      hasEnded = notification.endsFeed
      if hasEnded, verdict == .proceed { try end(handle) }
      return verdict
    }
  }

  /// Ends the watch of a feed that was undefined, after the handler has its last notification.
  private func end(_ handle: Handler) throws(ClientError) {
    hasEnded = false
    let reason = RemoteError(code: RemoteError.unknownFeed, message: "the feed was undefined")
    try perform(watcher.ended(), cause: .refused(reason), handle)
  }

  /// Processes the response to `hello` or `watch`.
  private func handleAnswer(_ result: Result<JSONView, RemoteError>, _ handle: Handler) throws(ClientError) -> Verdict {
    switch result {
    case .failure(let error): try perform(watcher.refused(error), cause: .refused(error), handle)
    case .success(let view) where watcher.isGreeting:
      _ = try reading(ServerHello(view))
      try perform(watcher.greeted(), handle)
    case .success where watcher.isAskingForList: try perform(watcher.startedList(), handle)
    case .success(let view): return try begin(try reading(WatchStart(view)), handle)
    }
    return .proceed
  }

  /// - Returns: the delta that the mirror applied.
  private func record(_ notification: Notification) throws(ClientError) -> Delta? {
    let params = notification.params
    switch notification.kind {
    case .snapshot:
      let reader = MemberReader(object: params, place: "snapshot")
      let revision = try reading(reader.revision("revision"))
      try checking(watcher.took(snapshot: revision, isReset: reader.flag("reset"), isLast: reader.flag("last")))
      if !watcher.options.elements {
        _ = try reading(counts?.apply(params))
      } else if keepsMirror {
        try add(try reading(SnapshotPart(params)))
      }
    case .delta:
      let reader = MemberReader(object: params, place: "delta")
      let from = try reading(reader.revision("from"))
      let revision = try reading(reader.revision("revision"))
      try checking(watcher.took(deltaFrom: from, to: revision))
      if !watcher.options.elements {
        _ = try reading(counts?.apply(params))
        return nil
      }
      guard mirror != nil else { return nil }
      let delta = try reading(Delta(params))
      try checking(mirror?.apply(delta))
      return delta
    case .bookmark:
      let bookmark = try reading(Bookmark(params))
      try checking(watcher.took(bookmark))
      try checking(mirror?.apply(bookmark))
    case .selection:
      guard mirror != nil else { return nil }
      let selection = try reading(Selection(params))
      try checking(mirror?.apply(selection))
    case .bye, .other: break
    }
    return nil
  }

  private func add(_ part: SnapshotPart) throws(ClientError) {
    if mirror == nil, let sections = part.resetSections, let progress = watcher.progress {
      // A resumed watch without rows. This snapshot contains all of them.
      mirror = Mirror(
        WatchStart(feed: part.feed, epoch: progress.epoch, revision: part.revision, resumed: false, sections: sections))
    }
    try checking(mirror?.apply(part))
  }
}
