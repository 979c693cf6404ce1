import FeedClient
import FeedJSON
import FeedSystem
import Glibc

/// One run of `watch`: follows the feed, shows it, and ends when what was asked for is there, the time is up, the
/// reader is gone or the person has seen enough.
final class WatchRun {
  /// How long the end may wait for the daemon's digest.
  private static let verifyTime: UInt64 = 10_000_000_000
  let settings: WatchSettings
  let display: any WatchDisplay
  let console: Console
  let follower: Follower
  var sinceFile: SinceFile?
  var verification = Verification()
  var shownCount = 0
  /// Why the run ends; set once.
  var ending: ExitStatus?
  private var endsBefore: UInt64?
  private var lastComplaint: String?
  private let deadline: UInt64?
  private let socketPath: String

  init(_ invocation: Invocation, _ settings: WatchSettings, _ display: any WatchDisplay) throws(Failure) {
    self.settings = settings
    self.display = display
    console = invocation.console
    socketPath = invocation.socketPath
    deadline = settings.timeout.map { MonotonicClock.now &+ $0.clampedNanoseconds }
    var options = settings.options
    if let path = settings.sinceFile {
      let file = try SinceFile(path: path, feed: options.feed)
      sinceFile = file
      // A list on a screen needs all rows, and so does a snapshot.
      if !display.needsMirror, !settings.snapshotOnly { options.since = file.position }
    }
    follower = Follower(path: socketPath, options: options, keepsMirror: settings.verifies || display.needsMirror)
  }

  /// Runs to the end.
  /// - Parameter signals: what a person at the terminal does, when the display owns it.
  func run(_ signals: TerminalSignals? = nil) throws(Failure) -> ExitStatus {
    defer { display.leave() }
    while true {
      try advance()
      let now = MonotonicClock.now
      if let deadline, now >= deadline, ending == nil { ending = .timedOut }
      if let ending, try isVerified(now) { return ending }
      if let endsBefore, now >= endsBefore {
        console.say("not verified: the feed did not hold still long enough")
        return .timedOut
      }
      try wait(signals, now)
    }
  }

  private func advance() throws(Failure) {
    do throws(ClientError) {
      try follower.advance { event throws(ClientError) in try take(event) }
    } catch {
      try? display.update(follower.mirror, status, now: MonotonicClock.now)
      throw .client(error)
    }
    try display.update(follower.mirror, status, now: MonotonicClock.now)
    // Only what its reader has got counts as seen.
    try sinceFile?.save(follower.position)
  }

  private var status: WatchStatus {
    WatchStatus(
      feed: settings.options.feed, complaint: follower.isWatching ? nil : lastComplaint ?? "connecting",
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
        console.say("went on from revision \(start.revision) without its rows: --verify begins with the next snapshot")
      }
    case .response(let id, let result):
      if verification.expects(id) { try takeDigest(result) }
    case .notification(let notification, let delta):
      return try take(notification, delta)
    }
    return .proceed
  }

  private func take(_ notification: Notification, _ delta: Delta?) throws(ClientError) -> Follower.Verdict {
    let now = MonotonicClock.now
    if ending == nil { display.take(notification, delta, follower.mirror, now: now) }
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
    if isOver, ending == nil { ending = .done }
    return isOver || console.pendingBytes > 256 << 10 ? .pause : .proceed
  }

  /// Says once why there is nothing to see.
  private func complain(_ reason: ClientError) {
    let sentence: String
    switch reason {
    case .noDaemon: sentence = "waiting for a daemon at \(socketPath)"
    case .refused: sentence = "waiting for the feed \(settings.options.feed)"
    default: sentence = "\(reason.clause); connecting again"
    }
    if sentence != lastComplaint, !display.needsMirror { console.say(sentence) }
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

  private func check(_ now: UInt64) throws(ClientError) {
    guard settings.verifies, let mirror = follower.mirror else { return }
    do throws(FeedFault) {
      try verification.check(mirror, now: now)
    } catch {
      throw .fault(error)
    }
  }

  /// Asks for a digest if it is time; whether nothing is left to be compared.
  private func isVerified(_ now: UInt64) throws(Failure) -> Bool {
    guard settings.verifies, follower.mirror != nil else { return true }
    if verification.isComplete {
      display.leave()
      if let verified = verification.verified {
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
      throw .client(error)
    }
  }

  private func wait(_ signals: TerminalSignals?, _ now: UInt64) throws(Failure) {
    try askForDigest(now, atOnce: false)
    let due = [
      deadline.flatMap { ending == nil ? $0 : nil }, endsBefore, follower.deadline, display.deadline,
      settings.verifies ? verification.deadline : nil,
    ]
    var list = WaitList()
    if let descriptor = follower.descriptor { list.add(descriptor, follower.interest) }
    // A reader that is gone is noticed even while there is nothing to write to it.
    list.add(StandardStreams.output, [])
    if let signals { list.add(signals.descriptor, .readable) }
    do throws(SystemError) {
      _ = try list.wait(until: due.compactMap { $0 }.min())
    } catch {
      throw .system(error)
    }
    if list.isBroken(StandardStreams.output) { throw .readerGone }
    if let signals, !list.ready(signals.descriptor).isEmpty, try signals.handle() { ending = .done }
  }
}
