import FeedClient
import FeedJSON
import FeedSystem
import Glibc

/// One run of `watch`: follows the feed and shows it, until the count is reached, it times out, the reader of its
/// output has closed it, or it is interrupted.
final class WatchRun {
  /// The maximum nanoseconds that the end waits for the daemon's digest.
  private static let verifyTime: UInt64 = 10_000_000_000
  private let invocation: Invocation
  private let settings: WatchSettings
  private let display: any WatchDisplay
  private let follower: Follower
  private var sinceFile: SinceFile?
  private var verification = Verification()
  private var shownCount = 0
  /// The last printed numbers of rows, in a watch without elements.
  private var shownCounts: FeedCounts?
  /// The exit status; set once.
  private var ending: ExitStatus?
  /// Whether the rows stay on the screen, because the watch was not interrupted.
  private var leavesRows = false
  private var endsBefore: UInt64?
  private var lastComplaint: String?
  /// The reason why the daemon refused the request of a key.
  private var lastRefusal: String?
  private let deadline: UInt64?

  private var console: Console { invocation.console }

  init(_ invocation: Invocation, _ settings: WatchSettings, _ display: any WatchDisplay) throws(Failure) {
    self.settings = settings
    self.display = display
    self.invocation = invocation
    deadline = settings.timeout.map { MonotonicClock.now &+ $0.clampedNanoseconds }
    var options = settings.options
    if let path = settings.sinceFile {
      let file = try SinceFile(path: path, feed: options.feed)
      sinceFile = file
      // A display of rows and a snapshot need all rows.
      if !display.needsMirror, !settings.snapshotOnly { options.since = file.position }
    }
    follower = Follower(
      path: invocation.socketPath, options: options, keepsMirror: settings.verifies || display.needsMirror)
  }

  /// Runs until the watch ends.
  func run() throws(Failure) -> ExitStatus {
    defer { display.leave(nil) }
    while true {
      try advance()
      let now = MonotonicClock.now
      if let deadline, now >= deadline, ending == nil { ending = .timedOut }
      if let ending, try isVerified(now) {
        display.leave(leavesRows ? follower.mirror : nil)
        if ending == .timedOut { throw invocation.failure(.timedOut) }
        return ending
      }
      if let endsBefore, now >= endsBefore {
        display.leave(nil)
        console.say("cannot verify '\(settings.options.feed)': it kept changing for 10 s")
        return .timedOut
      }
      try wait(now)
    }
  }

  private func advance() throws(Failure) {
    do throws(ClientError) {
      try follower.advance { event throws(ClientError) in try take(event) }
    } catch {
      try? display.update(follower.mirror, status, now: MonotonicClock.now)
      throw invocation.failure(error)
    }
    try display.update(follower.mirror, status, now: MonotonicClock.now)
    // Saves the position only after the output was written.
    try sinceFile?.save(follower.position)
  }

  private var status: WatchStatus {
    WatchStatus(
      feed: settings.options.feed, complaint: follower.isWatching ? lastRefusal : lastComplaint ?? "connecting",
      verifiedRevision: verification.verified?.revision)
  }

  private func take(_ event: Follower.Event) throws(ClientError) -> Follower.Verdict {
    switch event {
    case .waiting(let reason):
      verification.lost()
      complain(reason)
    case .started(let start):
      lastComplaint = nil
      if settings.verifies, follower.mirror == nil {
        console.say("resumed at revision \(start.revision) without its rows; --verify starts with the next snapshot")
      }
      return takeCounts()
    case .response(let id, let result):
      if verification.expects(id) { try takeDigest(result) } else { note(result) }
    case .notification(let notification, let delta):
      return try take(notification, delta)
    }
    return .proceed
  }

  /// Prints the initial numbers of rows of a watch without elements. They count as its snapshot.
  private func takeCounts() -> Follower.Verdict {
    guard follower.counts != nil, follower.counts != shownCounts else { return .proceed }
    showCounts()
    shownCount += 1
    guard shownCount == settings.count || settings.snapshotOnly else { return .proceed }
    if ending == nil { (ending, leavesRows) = (.done, true) }
    return .pause
  }

  private func showCounts() {
    guard ending == nil, let counts = follower.counts, counts != shownCounts else { return }
    shownCounts = counts
    (display as? StateLines)?.show(counts: counts.sections, revision: counts.revision, of: settings.options.feed)
  }

  private func take(_ notification: Notification, _ delta: Delta?) throws(ClientError) -> Follower.Verdict {
    let now = MonotonicClock.now
    if ending == nil { display.take(notification, delta, follower.mirror, now: now) }
    showCounts()
    switch notification.kind {
    case .snapshot, .delta:
      shownCount += 1
      if settings.verifies, follower.mirror != nil { verification.changed(now: now) }
      try check(now)
    case .bookmark, .selection, .bye, .other: break
    }
    let isOver =
      shownCount == settings.count
      || settings.snapshotOnly && notification.kind == .snapshot && notification.params.member("last")?.bool == true
    if isOver, ending == nil { (ending, leavesRows) = (.done, true) }
    return isOver || console.pendingBytes > 256 << 10 ? .pause : .proceed
  }

  /// Reports once why there are no updates.
  private func complain(_ reason: ClientError) {
    let sentence: String
    switch reason {
    case .noDaemon: sentence = "waiting for a daemon at \(invocation.socketPath)"
    case .refused: sentence = "waiting for the feed \(settings.options.feed)"
    default: sentence = "\(reason.clause); reconnecting"
    }
    if sentence != lastComplaint, display.descriptors.isEmpty { console.say(sentence) }
    lastComplaint = sentence
  }
}

extension WatchRun {
  private func takeDigest(_ result: Result<JSONView, RemoteError>) throws(ClientError) {
    switch result {
    case .failure(let error): throw .refused(error)
    case .success(let view):
      do throws(MalformedMessage) {
        verification.answered(try Verification.Answer(view))
      } catch {
        throw .malformed(error)
      }
    }
    try check(MonotonicClock.now)
  }

  /// Shows why the daemon refused to select a row.
  private func note(_ result: Result<JSONView, RemoteError>) {
    if case .failure(let error) = result { lastRefusal = CommandWords.translate(error.message) }
  }

  private func check(_ now: UInt64) throws(ClientError) {
    guard settings.verifies, let mirror = follower.mirror else { return }
    do throws(FeedFault) {
      try verification.check(mirror, now: now)
    } catch {
      throw .fault(error)
    }
  }

  /// Requests a digest if it is time. Returns whether nothing is left to compare.
  private func isVerified(_ now: UInt64) throws(Failure) -> Bool {
    guard settings.verifies, follower.mirror != nil else { return true }
    if verification.isComplete {
      if let verified = verification.verified {
        display.leave(leavesRows ? follower.mirror : nil)
        console.say("verified \(settings.options.feed) at revision \(verified.revision): digest \(verified.digest)")
      }
      return true
    }
    if endsBefore == nil { endsBefore = now &+ Self.verifyTime }
    try askForDigest(now, atOnce: true)
    return false
  }

  private func askForDigest(_ now: UInt64, atOnce: Bool) throws(Failure) {
    guard settings.verifies, verification.mustAsk(now: now, atOnce: atOnce), follower.progress?.isLive == true else {
      return
    }
    let feed = settings.options.feed
    do throws(ClientError) {
      let id = try follower.request("verify") { params in
        params.append("{\"feed\":")
        params.appendJSONString(feed)
        params.append("}")
      }
      if let id { verification.asked(id) }
    } catch {
      throw invocation.failure(error)
    }
  }

  private func wait(_ now: UInt64) throws(Failure) {
    try askForDigest(now, atOnce: false)
    let due = [
      deadline.flatMap { ending == nil ? $0 : nil }, endsBefore, follower.deadline, display.deadline,
      settings.verifies ? verification.deadline : nil,
    ]
    var list = WaitList()
    if let descriptor = follower.descriptor { list.add(descriptor, follower.interest) }
    // Detects a reader that closed the output even if there is nothing to write.
    list.add(StandardStreams.output, [])
    for descriptor in display.descriptors { list.add(descriptor, .readable) }
    do throws(SystemError) {
      _ = try list.wait(until: due.compactMap { $0 }.min())
    } catch {
      throw .system(error)
    }
    if list.isBroken(StandardStreams.output) { throw .readerGone }
    guard display.descriptors.contains(where: { !list.ready($0).isEmpty }) else { return }
    for input in try display.takeInput(follower.mirror, now: MonotonicClock.now) { try take(input) }
  }

  private func take(_ input: WatchInput) throws(Failure) {
    switch input {
    case .quit: ending = .done
    case .signal(let signal):
      display.leave(nil)
      throw .interrupted(signal)
    case .select(let section, let row, let isOn):
      lastRefusal = nil
      let feed = settings.options.feed
      do throws(ClientError) {
        _ = try follower.request(isOn ? "select" : "deselect") { params in
          params.append("{\"feed\":")
          params.appendJSONString(feed)
          params.append(string: ",\"at\":[[\(section),\(row)]]}")
        }
      } catch {
        throw invocation.failure(error)
      }
    }
  }
}
