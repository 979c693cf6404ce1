import FeedClient
import FeedJSON
import FeedSystem

/// One run of `watch`: follows feeds and shows them, until the count is reached, it times out, the reader of its output
/// has closed it, or it is interrupted.
final class WatchRun {
  /// The maximum nanoseconds that the end waits for the daemon's digest.
  private static let verifyTime: UInt64 = 10_000_000_000
  private let invocation: Invocation
  private let settings: WatchSettings
  private let display: any WatchDisplay
  private let feeds: [WatchedFeed]
  /// The positions of `--since-file`; nil without it.
  private var positions: TakenPositions?
  /// The exit status; set once.
  private var ending: ExitStatus?
  /// The time when the final verification times out.
  private var endsBefore: UInt64?
  private let deadline: UInt64?

  init(_ invocation: Invocation, _ settings: WatchSettings, _ display: any WatchDisplay) throws(Failure) {
    (self.settings, self.display, self.invocation) = (settings, display, invocation)
    deadline = settings.timeout.map { MonotonicClock.now &+ $0.clampedNanoseconds }
    var positions: TakenPositions?
    if let path = settings.sinceFile {
      let meter = OutputMeter()
      positions = TakenPositions(try SinceFile(path: path, feeds: settings.feeds), meter)
      invocation.console.writeOutput { bytes throws(SystemError) in
        try meter.write(bytes) { () throws(SystemError) in try positions?.advance(now: MonotonicClock.now) }
      }
    }
    self.positions = positions
    feeds = settings.feeds.enumerated().map { index, name in
      WatchedFeed(name, index: index, since: positions?.states[name], invocation, settings, display, positions)
    }
  }

  private var states: [WatchState] { feeds.map(\.shown) }

  /// Runs until the watch ends.
  func run() throws(Failure) -> ExitStatus {
    defer { display.leave([]) }
    let status: ExitStatus
    do throws(Failure) {
      status = try follow()
    } catch {
      // What was read before the failure counts.
      try? settle()
      throw error
    }
    try settle()
    return status
  }

  /// Waits until the reader of the output has taken it, and saves the positions.
  private func settle() throws(Failure) {
    guard let positions, let path = settings.sinceFile else { return }
    // A failed write was reported before; the reader may have taken a part of it.
    try? invocation.console.flush()
    if try Failure.ofSystem(try positions.settle()) { return }
    invocation.console.say("the reader did not take all of the output; the next watch with \(path) repeats the rest")
  }

  private func follow() throws(Failure) -> ExitStatus {
    while true {
      try advance()
      let now = MonotonicClock.now
      if ending == nil, feeds.allSatisfy(\.isDone) { ending = .done }
      if let deadline, now >= deadline, ending == nil { ending = .timedOut }
      if let ending, try isVerified(now) { return try end(ending) }
      if let endsBefore, now >= endsBefore {
        display.leave([])
        let name = feeds.first { !$0.isVerified }?.name ?? ""
        invocation.console.say("cannot verify '\(name)': it kept changing for 10 s")
        return .timedOut
      }
      try wait(now)
    }
  }

  private func advance() throws(Failure) {
    do throws(Failure) {
      for feed in feeds { try feed.advance() }
    } catch {
      try? display.update(states, now: MonotonicClock.now)
      throw error
    }
    try display.update(states, now: MonotonicClock.now)
    try Failure.ofSystem(try positions?.advance(now: MonotonicClock.now))
  }

  /// Ends the display. Leaves the rows on the screen if the watch was not interrupted.
  private func end(_ ending: ExitStatus) throws(Failure) -> ExitStatus {
    display.leave(feeds.allSatisfy(\.isDone) ? states : [])
    for feed in feeds { feed.sayVerified() }
    if ending == .timedOut { throw invocation.failure(.timedOut) }
    return ending
  }

  /// Requests digests if it is time. Returns whether nothing is left to compare.
  private func isVerified(_ now: UInt64) throws(Failure) -> Bool {
    if feeds.allSatisfy(\.isVerified) { return true }
    if endsBefore == nil { endsBefore = now &+ Self.verifyTime }
    for feed in feeds where !feed.isVerified { try feed.askForDigest(now, atOnce: true) }
    return false
  }

  private func wait(_ now: UInt64) throws(Failure) {
    var due = [deadline.flatMap { ending == nil ? $0 : nil }, endsBefore, display.deadline, positions?.deadline]
    var list = WaitList()
    for feed in feeds where settings.verifies || !feed.isDone {
      try feed.askForDigest(now, atOnce: false)
      due += feed.deadlines
      if let descriptor = feed.follower.descriptor { list.add(descriptor, feed.follower.interest) }
    }
    // Detects a reader that closed the output even if there is nothing to write.
    list.add(StandardStreams.output, [])
    for descriptor in display.descriptors { list.add(descriptor, .readable) }
    _ = try Failure.ofSystem(try list.wait(until: due.compactMap { $0 }.min()))
    if list.isBroken(StandardStreams.output) { throw .readerGone }
    guard display.descriptors.contains(where: { !list.ready($0).isEmpty }) else { return }
    for input in try display.takeInput(states, now: MonotonicClock.now) { try take(input) }
  }

  private func take(_ input: WatchInput) throws(Failure) {
    switch input {
    case .quit: ending = .done
    case .signal(let signal):
      display.leave([])
      throw .interrupted(signal)
    case .select(let feed, let section, let row, let isOn):
      try feeds[feed].select(section: section, row: row, isOn: isOn)
    }
  }
}

protocol WatchDisplay: AnyObject {
  var needsMirror: Bool { get }
  /// What the display needs to know of the rows of notifications.
  var rowNeeds: RowNeeds { get }
  /// Whether the display needs the identities of deleted rows.
  var needsIDs: Bool { get }
  /// Whether the display shows complete states. If so, `--count` counts a snapshot once, otherwise each of its parts.
  var countsStates: Bool { get }
  /// Shows a notification, or stores it until ``update(_:now:)``. The mirror has already applied it; a delta is
  /// decoded.
  /// - Parameters:
  ///   - news: the rows of the notification, if the display needs them.
  ///   - feed: the index of the feed.
  /// - Returns: whether there was something to show.
  func take(
    _ notification: Notification, _ delta: Delta?, _ news: RowNews?, _ mirror: Mirror?, feed: Int, now: UInt64
  ) -> Bool
  /// Shows pending updates.
  func update(_ feeds: [WatchState], now: UInt64) throws(Failure)
  /// The time to call ``update(_:now:)`` without an event; nil if there is none.
  var deadline: UInt64? { get }
  /// Descriptors to poll for reading: signals and keys.
  var descriptors: [Int32] { get }
  /// Handles the input of ``descriptors``.
  func takeInput(_ feeds: [WatchState], now: UInt64) throws(Failure) -> [WatchInput]
  /// Restores the terminal.
  /// - Parameter last: the states to leave on the screen; empty if the watch was interrupted.
  func leave(_ last: [WatchState])
}

/// The request of a person at the terminal.
enum WatchInput: Equatable {
  case quit
  /// End the process by this signal.
  case signal(Int32)
  case select(feed: Int, section: Int, row: Int, isOn: Bool)
}

struct WatchState {
  var feed: String
  var mirror: Mirror?
  /// The reason why there are no updates; nil while the watch is running.
  var complaint: String?
  /// The last revision that matched the daemon's digest, with `--verify`.
  var verifiedRevision: UInt64?
}

/// Compares a mirror with the daemon's digest at the same revision: a pure state machine.
///
/// An answer may arrive before the deltas that lead to its revision. It is then kept until the mirror has this
/// revision. If the mirror is already at a later revision, another digest is requested.
struct Verification: Equatable {
  /// The daemon's answer to `verify`.
  struct Answer: Equatable {
    var revision: UInt64
    var counts: [Int]
    var digest: String
  }

  /// Nanoseconds without changes before a digest is requested.
  static let quiet: UInt64 = 200_000_000

  private var pendingID: Int?
  private var answer: Answer?
  private var changedAt: UInt64?
  /// The last answer that matched.
  private(set) var verified: Answer?

  /// Records a change of the mirror.
  mutating func changed(now: UInt64) { changedAt = now }

  /// Records that the connection was lost, and the answer with it.
  mutating func lost() {
    pendingID = nil
    answer = nil
  }

  /// Records that there is no answer now.
  mutating func postpone(now: UInt64) {
    lost()
    changedAt = now
  }

  /// Whether all changes are verified.
  var isComplete: Bool { changedAt == nil }

  /// The time of the next request; nil if there is none.
  var deadline: UInt64? { pendingID == nil && answer == nil ? changedAt.map { $0 &+ Self.quiet } : nil }

  /// Whether to send a request now.
  /// - Parameter atOnce: whether to skip the wait for a time without changes.
  func mustAsk(now: UInt64, atOnce: Bool) -> Bool {
    guard let deadline else { return false }
    return atOnce || now >= deadline
  }

  /// Records the id of a `verify` request that was sent.
  mutating func asked(_ id: Int) { pendingID = id }

  /// Whether an id is that of the `verify` request.
  func expects(_ id: Int) -> Bool { id == pendingID }

  /// Records the answer of the daemon.
  mutating func answered(_ answer: Answer) {
    pendingID = nil
    self.answer = answer
  }

  /// Compares, if the mirror is at the revision of the answer.
  /// - Throws: the fault if the digests differ.
  mutating func check(_ mirror: Mirror, now: UInt64) throws(FeedFault) {
    guard let answer, mirror.progress.isLive else { return }
    if mirror.progress.holds(at: answer.revision) {
      let digest = mirror.digest
      guard digest == answer.digest, mirror.counts == answer.counts else {
        throw .digest(revision: answer.revision, mine: digest, daemons: answer.digest)
      }
      verified = answer
      self.answer = nil
      changedAt = nil
    } else if mirror.progress.revision > answer.revision {
      self.answer = nil
      changedAt = now
    }
  }
}

extension Verification.Answer {
  init(_ result: JSONView) throws(MalformedMessage) {
    let reader = MemberReader(object: result, place: "verify")
    revision = try reader.revision("revision")
    counts = try reader.array("counts").map { $0.int ?? -1 }
    digest = try reader.string("digest")
  }
}
