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
  private var parts: ShownParts
  /// The last printed numbers of rows, in a watch without elements.
  private var shownCounts: FeedCounts?
  private var remarks: WatchRemarks
  /// Why the section of `--section` is refused.
  private var sectionRefusal: Failure?

  private var console: Console { invocation.console }
  /// Whether the requested number of changes was shown.
  var isDone: Bool { parts.isDone }

  init(
    _ name: String, index: Int, since: SinceFile.State?, _ invocation: Invocation, _ settings: WatchSettings,
    _ display: any WatchDisplay, _ positions: TakenPositions?
  ) {
    (self.name, self.positions, self.index, self.invocation) = (name, positions, index, invocation)
    (self.settings, self.display) = (settings, display)
    parts = ShownParts(wanted: settings.count, snapshotOnly: settings.snapshotOnly)
    remarks = WatchRemarks(name, invocation)
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

  var shown: WatchState {
    WatchState(
      feed: name, mirror: follower.mirror,
      complaint: follower.isWatching ? remarks.refusal : remarks.complaint ?? "connecting",
      verifiedRevision: verification.verified?.revision)
  }

  /// The times to call ``advance()`` or ``askForDigest(_:atOnce:)`` without input.
  var deadlines: [UInt64?] { [follower.deadline, settings.verifies ? verification.deadline : nil] }

  /// Processes available messages, until the display pauses.
  func advance() throws(Failure) {
    // Later notifications stay unread.
    if isDone, !settings.verifies { return }
    try invocation.attempt { () throws(ClientError) in
      try follower.advance { event throws(ClientError) in try take(event) }
    }
    if let sectionRefusal { throw sectionRefusal }
  }

  private func take(_ event: Follower.Event) throws(ClientError) -> Follower.Verdict {
    // A watch that is done reads on only to verify its copy.
    let wasDone = isDone
    defer { if !wasDone { notePosition() } }
    switch event {
    case .waiting(let reason):
      verification.lost()
      remarks.complain(reason, isShown: !display.descriptors.isEmpty)
    case .started(let start):
      if tracker != nil { track(start) }
      do throws(Failure) {
        try remarks.started(start, settings.filter.section)
      } catch {
        sectionRefusal = error
        return .pause
      }
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

  /// Notes the position that the output has reached.
  private func notePosition() {
    guard let positions, let position = follower.position else { return }
    positions.note(SinceFile.State(position: position, rows: tracker?.saved), of: name, at: console.offset)
  }

  /// Prints the initial numbers of rows of a watch without elements. They count as its snapshot.
  private func takeCounts() -> Follower.Verdict {
    guard follower.counts != nil, follower.counts != shownCounts else { return .proceed }
    showCounts()
    parts.didShowCounts()
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
    let news = try reading(tracker?.take(notification))
    var isShown = false
    if !isDone { isShown = display.take(notification, delta, news, follower.mirror, feed: index, now: now) }
    showCounts()
    let isLast = notification.params.member("last")?.bool == true
    switch notification.kind {
    case .snapshot, .delta:
      // A display of states shows a snapshot once it is complete.
      parts.take(isShown, isWhole: notification.kind == .delta || isLast || !display.countsStates)
      if settings.verifies, follower.mirror != nil { verification.changed(now: now) }
      try check(now)
    case .bookmark, .selection, .bye, .other: break
    }
    let isOver = parts.end(atSnapshot: notification.kind == .snapshot && isLast)
    return isOver || console.pendingBytes > 256 << 10 ? .pause : .proceed
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
    let id = try invocation.attempt { () throws(ClientError) in
      try follower.request("verify") { params in
        params.append("{\"feed\":", quoted: name)
        params.append("}")
      }
    }
    if let id { verification.asked(id) }
  }

  func select(section: Int, row: Int, isOn: Bool) throws(Failure) {
    remarks.refusal = nil
    _ = try invocation.attempt { () throws(ClientError) in
      try follower.request(isOn ? "select" : "deselect") { params in
        params.append("{\"feed\":", quoted: name)
        params.append(string: ",\"at\":[[\(section),\(row)]]}")
      }
    }
  }

  private func takeDigest(_ result: Result<JSONView, RemoteError>) throws(ClientError) {
    switch result {
    // The notification that ends the feed is still to come: a throttle may hold it back.
    case .failure(let error) where error.code == RemoteError.unknownFeed: verification.postpone(now: MonotonicClock.now)
    case .failure(let error): throw .refused(error)
    case .success(let view): verification.answered(try reading(Verification.Answer(view)))
    }
    try check(MonotonicClock.now)
  }

  /// Shows why the daemon refused to select a row.
  private func note(_ result: Result<JSONView, RemoteError>) {
    if case .failure(let error) = result { remarks.refusal = CommandWords().translate(error.message) }
  }

  private func check(_ now: UInt64) throws(ClientError) {
    guard settings.verifies, let mirror = follower.mirror else { return }
    try checking(verification.check(mirror, now: now))
  }
}

/// What of a feed was shown, for `--count` and `--snapshot`.
private struct ShownParts {
  /// The number of parts of snapshots and deltas that are wanted, or of states; nil for all.
  private let wanted: Int?
  private let snapshotOnly: Bool
  private var count = 0
  /// Whether a part of the snapshot that is being received was shown.
  private var hasShownPart = false
  private(set) var isDone = false

  init(wanted: Int?, snapshotOnly: Bool) { (self.wanted, self.snapshotOnly) = (wanted, snapshotOnly) }

  /// Counts the numbers of rows of a watch without elements as its snapshot.
  mutating func didShowCounts() {
    count += 1
    isDone = isDone || count == wanted || snapshotOnly
  }

  /// Counts a part of a snapshot, or a delta.
  /// - Parameter isWhole: whether the part counts; otherwise it counts with the next one.
  mutating func take(_ isShown: Bool, isWhole: Bool) {
    hasShownPart = hasShownPart || isShown
    if hasShownPart, isWhole { (count, hasShownPart) = (count + 1, false) }
  }

  /// Returns whether enough was shown.
  /// - Parameter isSnapshot: whether a snapshot has just ended.
  mutating func end(atSnapshot isSnapshot: Bool) -> Bool {
    let isOver = count == wanted || snapshotOnly && isSnapshot
    if isOver { isDone = true }
    return isOver
  }
}

/// What is said about the connection and the section of a watch, each time once.
struct WatchRemarks {
  private let feed: String
  private let invocation: Invocation
  /// Why there are no updates, as it was found last; nil while there are.
  private(set) var complaint: String?
  /// Why the daemon refused the request of a key.
  var refusal: String?
  /// Whether it was remarked that the feed has not the section that is watched.
  private var hasRemarked = false

  init(_ feed: String, _ invocation: Invocation) { (self.feed, self.invocation) = (feed, invocation) }

  /// The watch has begun, so there are updates. Remarks that the feed has not the section that is watched.
  /// - Throws: a usage error if the section is ambiguous.
  mutating func started(_ start: WatchStart, _ section: SectionWord?) throws(Failure) {
    complaint = nil
    guard let remark = try section?.check(start.sections), !hasRemarked else { return }
    hasRemarked = true
    invocation.console.say(remark)
  }

  /// Tells why there are no updates.
  /// - Parameter isShown: whether a display shows ``complaint``, so that nothing is printed.
  mutating func complain(_ reason: ClientError, isShown: Bool = false) {
    let sentence =
      switch reason {
      case .noDaemon: "waiting for a daemon at \(invocation.socketPath)"
      case .refused: "waiting for the feed \(feed)"
      default: "\(reason.clause); reconnecting"
      }
    if sentence != complaint, !isShown { invocation.console.say(sentence) }
    complaint = sentence
  }
}
