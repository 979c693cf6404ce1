import FeedClient
import FeedJSON
import FeedSystem

/// One feed of a ``WatchRun``: follows it and reconnects, passes events to the display, and verifies the copy.
final class WatchedFeed {
  let name: String
  let follower: Follower
  private let index: Int
  private let invocation: Invocation
  private let settings: WatchSettings
  private let display: any WatchDisplay
  /// The positions that are saved; nil without `--since-file`.
  private let positions: TakenPositions?
  private var verification = Verification()
  /// The rows, if the display needs them.
  private var tracker: RowTracker?
  /// The last position that was told, from which the next watch resumes.
  private var position: FeedPosition?
  /// Whether a part of the snapshot that is being received was shown.
  private var hasShownPart = false
  /// The number of parts of snapshots and deltas that were printed, or of states that were shown, for `--count`.
  private var shownCount = 0
  /// The last printed numbers of rows, in a watch without elements.
  private var shownCounts: FeedCounts?
  /// Whether the requested number of changes was shown.
  private(set) var isDone = false
  /// Whether the position of the last change that was shown is noted.
  private var hasEnded = false
  private var lastComplaint: String?
  /// Why the section of `--section` is refused; whether it was remarked that there is none.
  private var sectionRefusal: Failure?
  private var hasRemarked = false
  /// The reason why the daemon refused the request of a key.
  private var lastRefusal: String?

  private var console: Console { invocation.console }

  init(
    _ name: String, index: Int, since: SinceFile.State?, _ invocation: Invocation, _ settings: WatchSettings,
    _ display: any WatchDisplay, _ positions: TakenPositions?
  ) {
    self.name = name
    self.positions = positions
    self.index = index
    self.invocation = invocation
    self.settings = settings
    self.display = display
    var options = settings.options
    options.feed = name
    // Readers of printed notifications expect each part of a snapshot within one section.
    options.spanning = display.needsMirror
    options.ids = display.needsIDs
    // A display of rows and a snapshot need all rows.
    if !display.needsMirror, !settings.snapshotOnly {
      options.since = since?.position
      position = options.since
    }
    // The signs of lines tell a moved row from an updated one.
    if display is ChangeLines || settings.filter.needsRows { options.initial = true }
    if display.rowNeeds != .none {
      let saved = options.since.flatMap { position in since?.rows.map { (position, $0) } }
      tracker = RowTracker(
        name, keepsRows: display.rowNeeds == .all, RowPrinter(filter: settings.filter.filter), saved: saved)
    }
    follower = Follower(
      path: invocation.socketPath, options: options, keepsMirror: settings.verifies || display.needsMirror)
  }

  /// The state for a display.
  var shown: WatchState {
    WatchState(
      feed: name, mirror: follower.mirror, complaint: follower.isWatching ? lastRefusal : lastComplaint ?? "connecting",
      verifiedRevision: verification.verified?.revision)
  }

  /// The times to call ``advance()`` or ``askForDigest(_:atOnce:)`` without input.
  var deadlines: [UInt64?] { [follower.deadline, settings.verifies ? verification.deadline : nil] }

  /// Processes available messages, until the display pauses.
  func advance() throws(Failure) {
    // Later notifications stay unread.
    if isDone, !settings.verifies { return }
    do throws(ClientError) {
      try follower.advance { event throws(ClientError) in try take(event) }
    } catch {
      throw invocation.failure(error)
    }
    if let sectionRefusal { throw sectionRefusal }
  }

  private func take(_ event: Follower.Event) throws(ClientError) -> Follower.Verdict {
    defer { notePosition() }
    switch event {
    case .waiting(let reason):
      verification.lost()
      complain(reason)
    case .started(let start):
      lastComplaint = nil
      if tracker != nil { track(start) }
      guard checkSection(start) else { return .pause }
      if settings.verifies, follower.mirror == nil {
        console.say(
          "resumed at revision \(grouped(Int(clamping: start.revision))) without its rows; "
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

  /// Tells the tracker of a new watch, and how elements are identified.
  private func track(_ start: WatchStart) {
    if display.rowNeeds == .all {
      tracker?.printer.identities = IdentityPaths(of: name, invocation)
    }
    tracker?.started(start, asked: position, hasSnapshot: follower.asksForSnapshot)
    position = follower.position
  }

  /// Whether the section of `--section` is not ambiguous.
  private func checkSection(_ start: WatchStart) -> Bool {
    do throws(Failure) {
      guard let remark = try settings.filter.section?.check(start.sections), !hasRemarked else { return true }
      hasRemarked = true
      console.say(remark)
      return true
    } catch {
      sectionRefusal = error
      return false
    }
  }

  /// Notes the position that the output has reached. A watch that is done reads on only to verify its copy.
  private func notePosition() {
    guard let positions, !hasEnded, let position = follower.position else { return }
    positions.note(SinceFile.State(position: position, rows: tracker?.saved), of: name, at: console.offset)
    hasEnded = isDone
  }

  private func reading<Value>(_ read: () throws(MalformedMessage) -> Value) throws(ClientError) -> Value {
    do throws(MalformedMessage) { return try read() } catch { throw .malformed(error) }
  }

  /// Prints the initial numbers of rows of a watch without elements. They count as its snapshot.
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
    position = follower.position
    let news = try reading { () throws(MalformedMessage) in try tracker?.take(notification) }
    var isShown = false
    if !isDone { isShown = display.take(notification, delta, news, follower.mirror, feed: index, now: now) }
    showCounts()
    let isLast = notification.params.member("last")?.bool == true
    switch notification.kind {
    case .snapshot, .delta:
      // A display of states shows a snapshot once it is complete.
      hasShownPart = hasShownPart || isShown
      if hasShownPart, notification.kind == .delta || isLast || !display.countsStates {
        shownCount += 1
        hasShownPart = false
      }
      if settings.verifies, follower.mirror != nil { verification.changed(now: now) }
      try check(now)
    case .bookmark, .selection, .bye, .other: break
    }
    let isOver = shownCount == settings.count || settings.snapshotOnly && notification.kind == .snapshot && isLast
    if isOver { isDone = true }
    return isOver || console.pendingBytes > 256 << 10 ? .pause : .proceed
  }

  /// Reports once why there are no updates.
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

  /// Prints the last verified revision.
  func sayVerified() {
    guard settings.verifies, let verified = verification.verified else { return }
    console.say(
      "verified \(name) at revision \(grouped(Int(clamping: verified.revision))): digest \(verified.digest)")
  }

  /// Requests a digest if it is time.
  /// - Parameter atOnce: whether to skip the wait for a time without changes.
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

  /// Selects or deselects a row.
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
    if case .failure(let error) = result { lastRefusal = CommandWords().translate(error.message) }
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
