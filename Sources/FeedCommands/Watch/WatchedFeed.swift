import FeedClient
import FeedJSON
import FeedSystem

/// One feed of a ``WatchRun``: follows it over lost connections, passes what happens to the display, and verifies the copy.
final class WatchedFeed {
  let name: String
  let follower: Follower
  private let index: Int
  private let invocation: Invocation
  private let settings: WatchSettings
  private let display: any WatchDisplay
  private var sinceFile: SinceFile?
  private var verification = Verification()
  /// What counts for `--count`: parts of snapshots and deltas that were printed, or states that were shown.
  private var shownCount = 0
  /// The numbers of rows that were printed last, by a watch without elements.
  private var shownCounts: FeedCounts?
  /// Whether everything that was asked for was shown.
  private(set) var isDone = false
  private var lastComplaint: String?
  /// Why the daemon refused what a key asked for.
  private var lastRefusal: String?

  private var console: Console { invocation.console }

  init(
    _ name: String, index: Int, _ invocation: Invocation, _ settings: WatchSettings, _ display: any WatchDisplay
  ) throws(Failure) {
    self.name = name
    self.index = index
    self.invocation = invocation
    self.settings = settings
    self.display = display
    var options = settings.options
    options.feed = name
    if let path = settings.sinceFile {
      let file = try SinceFile(path: path, feed: name)
      sinceFile = file
      // A display of rows needs all of them, and so does a snapshot.
      if !display.needsMirror, !settings.snapshotOnly { options.since = file.position }
    }
    follower = Follower(
      path: invocation.socketPath, options: options, keepsMirror: settings.verifies || display.needsMirror)
  }

  /// What a display shows of the feed.
  var state: WatchState {
    WatchState(
      feed: name, mirror: follower.mirror, complaint: follower.isWatching ? lastRefusal : lastComplaint ?? "connecting",
      verifiedRevision: verification.verified?.revision)
  }

  /// When to call ``advance()`` or ``askForDigest(_:atOnce:)`` although nothing can be read.
  var deadlines: [UInt64?] { [follower.deadline, settings.verifies ? verification.deadline : nil] }

  /// Receives what there is, until the display wants a pause.
  func advance() throws(Failure) {
    // The daemon keeps what comes after the end.
    if isDone, !settings.verifies { return }
    do throws(ClientError) {
      try follower.advance { event throws(ClientError) in try take(event) }
    } catch {
      throw invocation.failure(error)
    }
  }

  /// Records that everything received was written, which is what the reader has seen.
  func saveProgress() throws(Failure) { try sinceFile?.save(follower.position) }

  private func take(_ event: Follower.Event) throws(ClientError) -> Follower.Verdict {
    switch event {
    case .waiting(let reason):
      verification.lost()
      complain(reason)
    case .started(let start):
      lastComplaint = nil
      if settings.verifies, follower.mirror == nil {
        console.say(
          "resumed at revision \(Grouped.text(Int(clamping: start.revision))) without its rows; "
            + "--verify starts with the next snapshot")
      }
      return takeCounts()
    case .response(let id, let result):
      if verification.expects(id) { try takeDigest(result) } else { note(result) }
    case .notification(let notification, let delta):
      return try take(notification, delta)
    }
    return .proceed
  }

  /// Prints the numbers with which a watch without elements starts. They count as its snapshot.
  private func takeCounts() -> Follower.Verdict {
    guard follower.counts != nil, follower.counts != shownCounts else { return .proceed }
    showCounts()
    shownCount += 1
    isDone = isDone || shownCount == settings.count || settings.snapshotOnly
    return isDone ? .pause : .proceed
  }

  private func showCounts() {
    guard !isDone, let counts = follower.counts, counts != shownCounts else { return }
    shownCounts = counts
    (display as? StateLines)?.show(counts: counts.sections, revision: counts.revision, of: name)
  }

  private func take(_ notification: Notification, _ delta: Delta?) throws(ClientError) -> Follower.Verdict {
    let now = MonotonicClock.now
    if !isDone { display.take(notification, delta, follower.mirror, feed: index, now: now) }
    showCounts()
    let isLast = notification.params.member("last")?.bool == true
    switch notification.kind {
    case .snapshot, .delta:
      // A display of states shows a snapshot once it is complete.
      if notification.kind == .delta || isLast || !display.countsStates { shownCount += 1 }
      if settings.verifies, follower.mirror != nil { verification.changed(now: now) }
      try check(now)
    case .bookmark, .selection, .bye, .other: break
    }
    let isOver = shownCount == settings.count || settings.snapshotOnly && notification.kind == .snapshot && isLast
    if isOver { isDone = true }
    return isOver || console.pendingBytes > 256 << 10 ? .pause : .proceed
  }

  /// Reports once why nothing comes.
  private func complain(_ reason: ClientError) {
    let sentence: String
    switch reason {
    case .noDaemon: sentence = "waiting for a daemon at \(invocation.socketPath)"
    case .refused: sentence = "waiting for the feed \(name)"
    default: sentence = "\(reason.clause); reconnecting"
    }
    if sentence != lastComplaint, display.descriptors.isEmpty { console.say(sentence) }
    lastComplaint = sentence
  }
}

extension WatchedFeed {
  /// Whether nothing is left to compare with the daemon.
  var isVerified: Bool { !settings.verifies || follower.mirror == nil || verification.isComplete }

  /// Prints what was compared last.
  func sayVerified() {
    guard settings.verifies, let verified = verification.verified else { return }
    console.say(
      "verified \(name) at revision \(Grouped.text(Int(clamping: verified.revision))): digest \(verified.digest)")
  }

  /// Asks for a digest if it is time.
  /// - Parameter atOnce: whether to ask without waiting for a quiet moment.
  func askForDigest(_ now: UInt64, atOnce: Bool) throws(Failure) {
    guard settings.verifies, verification.mustAsk(now: now, atOnce: atOnce), follower.progress?.isLive == true else {
      return
    }
    do throws(ClientError) {
      let id = try follower.request("verify") { params in
        params.append("{\"feed\":")
        params.appendJSONString(name)
        params.append("}")
      }
      if let id { verification.asked(id) }
    } catch {
      throw invocation.failure(error)
    }
  }

  /// Selects a row, or deselects it.
  func select(section: Int, row: Int, isOn: Bool) throws(Failure) {
    lastRefusal = nil
    do throws(ClientError) {
      _ = try follower.request(isOn ? "select" : "deselect") { params in
        params.append("{\"feed\":")
        params.appendJSONString(name)
        params.append(string: ",\"at\":[[\(section),\(row)]]}")
      }
    } catch {
      throw invocation.failure(error)
    }
  }

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
}
