import FeedModel

/// One connection's watch of one feed: the revision of the watcher's copy, and the next step.
///
/// ```
///            snapshot parts sent          delta made while the queue is full,
///  snapshot ───────────────────▶ behind    or before the throttle's time
///      ▲                         │   ▲ ───────────────────────────────┐
///      │ out of reach            ▼   │                                │
///      └──────────────────── catching up ──────────────────────────▶ live
/// ```
///
/// A watch has exactly one seat: a list of its `FeedChannel` if it is live, otherwise a list of `WatchSchedule` or of a
/// `LongDelta`. A watch that is not live costs nothing while its feed changes: the missed changes are composed when they can be sent.
/// Only the engine's thread may use it.
final class Watch: Timed {
  enum Progress {
    /// Every delta is queued when it is made.
    case live
    /// The copy is at `revision`. Later changes are composed once the queue has room and the throttle allows it.
    case behind
    /// The copy is at `revision`. The next delta is being encoded in parts, or composed and encoded.
    case awaiting(LongDelta)
    /// A snapshot is being sent in parts.
    case snapshot(SnapshotCursor)
    /// A part of a snapshot was discarded, so the watcher needs a new one.
    case cutOff
  }

  enum Seat {
    /// The channel's list of watches that share each delta.
    case inStep
    /// The channel's list of live watches that are throttled or at a revision of their own.
    case solo
    /// The schedule's queue of watches that can be sent something now.
    case ready
    /// The schedule's heap of watches that wait for their throttle.
    case throttled
    /// The schedule's list of watches whose connection is full.
    case blocked
    /// The receivers of a delta that is being encoded in parts.
    case awaiting
    /// No list: the watch is being advanced, or moves between lists.
    case standing
    /// No list. The watch never gets another seat.
    case ended
  }

  /// What the watcher was told besides its rows.
  struct Told {
    /// The time of the last notification.
    var at: Instant
    /// The daemon's revision in the last bookmark; before the first, the revision at which the watch began.
    var revision: UInt64
    /// The version of the channel's selection that was sent last.
    var selection: UInt64
  }

  /// The memory of a watch in bytes, with its places in lists, rounded up. Snapshots are charged by themselves.
  static let memory = 256

  /// Unretained: a session ends its watches before it is released.
  private let owner: Unmanaged<Session>
  /// The number of the watch, above 0, by which the output of its connection knows it.
  let number: UInt32
  let channel: FeedChannel
  /// The minimum time between two deltas, in nanoseconds; 0 for none.
  let throttle: UInt64
  /// Whether a part of a snapshot may have rows of several sections.
  let spansSections: Bool
  var progress: Progress
  /// The revision of the watcher's copy after it has read its queued output.
  var queuedRevision: UInt64

  /// The list of the watch. Written, with `place`, by that list.
  var seat = Seat.standing
  /// The index in the list.
  var place = 0
  /// The number of bytes of the channel's buffer of this turn that the watch was given, while it is in step.
  var given = 0
  /// The time when the next delta may be queued.
  var nextDelta = Instant(nanoseconds: 0)
  var told: Told
  /// What is charged for the identities that the watch gets.
  var identityCharge: SnapshotMemory.Share?
  /// The timer of the next bookmark.
  var timer = TimerSeat()

  init(
    session: Session, number: UInt32, channel: FeedChannel, revision: UInt64, throttle: UInt64, spansSections: Bool,
    now: Instant
  ) {
    owner = .passUnretained(session)
    (self.number, self.channel, self.throttle, self.spansSections) = (number, channel, throttle, spansSections)
    progress = .live
    queuedRevision = revision
    // A new watcher assumes an empty selection.
    told = Told(
      at: now, revision: revision, selection: channel.selectionVersion &- (channel.feed.selection.isEmpty ? 0 : 1))
  }

  /// The session of the watch.
  /// - Precondition: the watch has not ended.
  var session: Session {
    assert(!isEnded, "an ended watch may outlive its session")
    return owner.takeUnretainedValue()
  }

  /// The revision of the watcher's copy after it has read all deltas made for it: `from` of the next delta.
  var revision: UInt64 { seat == .inStep ? channel.feed.revision : queuedRevision }

  var isEnded: Bool { seat == .ended }

  var isLive: Bool { if case .live = progress { true } else { false } }

  /// Whether the watcher has no complete copy until the rest of a snapshot, or a new one, is sent.
  var isSnapshotting: Bool {
    switch progress {
    case .snapshot, .cutOff: true
    case .live, .behind, .awaiting: false
    }
  }

  /// The difference between the revision of the feed and that of the watcher's copy.
  var lag: UInt64 { channel.feed.revision > revision ? channel.feed.revision - revision : 0 }
}

/// Lists of watches with one seat, each at the index that it knows. Adding and removing are O(1).
extension [Watch] {
  /// Gives a watch that stands nowhere a seat in this list.
  mutating func add(_ watch: Watch, as seat: Watch.Seat) {
    precondition(watch.seat == .standing, "a watch has one seat")
    watch.seat = seat
    watch.place = count
    append(watch)
  }

  /// Removes a watch, which stands nowhere then; the last one takes its place.
  mutating func take(_ watch: Watch) {
    precondition(self[watch.place] === watch, "the watch has no seat in this list")
    let last = removeLast()
    if last !== watch {
      last.place = watch.place
      self[watch.place] = last
    }
    watch.seat = .standing
  }

  /// Traps in a debug build unless each watch is at its place. O(watches).
  func checkInvariants(_ seat: Watch.Seat) {
    for (place, watch) in enumerated() { assert(watch.seat == seat && watch.place == place, "a watch is misplaced") }
  }
}
