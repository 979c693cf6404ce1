import FeedModel

/// One connection's watch of one feed: how far the watcher's copy has come, and what must happen next.
///
/// ```
///            snapshot parts sent          delta made while the queue is full,
///  snapshot ───────────────────▶ behind    or before the throttle's time
///      ▲                         │   ▲ ───────────────────────────────┐
///      │ out of reach            ▼   │                                │
///      └──────────────────── catching up ──────────────────────────▶ live
/// ```
///
/// A watch has exactly one seat at a time: it is in one list of its `FeedChannel` while it is live, and in one list of
/// `WatchSchedule` otherwise. A watch that is not live costs nothing while its feed changes: what it missed is composed when
/// it can be sent. Guarded by the engine's thread.
final class Watch: Timed {
  enum Progress {
    /// Every delta is queued as it is made.
    case live
    /// The copy is at `revision`. What came since is composed once the queue has room and the throttle allows it, over several
    /// turns when it is much.
    case behind(CatchUp?)
    /// A snapshot is being sent in parts.
    case snapshot(SnapshotCursor)
  }

  enum Seat {
    /// The channel's list of watches that share each delta.
    case inStep
    /// The channel's list of live watches that are at a revision of their own, or throttled.
    case solo
    /// The schedule's queue of watches that can be sent something now.
    case ready
    /// The schedule's heap of watches that wait for their throttle.
    case throttled
    /// The schedule's list of watches whose connection is full.
    case blocked
    /// No list: the watch is being brought forward, or changes lists.
    case standing
    /// No list, and never one again.
    case ended
  }

  /// Not counted: a session ends its watches before it goes.
  private let owner: Unmanaged<Session>
  let channel: FeedChannel
  /// The least time between two deltas, in nanoseconds; 0 for none.
  let throttle: UInt64
  var progress: Progress
  /// The revision that the watcher has once it has read what is queued for it.
  var queuedRevision: UInt64

  /// Written, with `place`, by the list that holds the watch.
  var seat = Seat.standing
  /// The place in the list of the seat.
  var place = 0
  /// How much of the channel's buffer of this turn the watch was given, while it is in step.
  var given = 0
  /// When the next delta may be queued.
  var nextDelta = Instant(nanoseconds: 0)
  /// When the watcher was last told anything.
  var lastTold: Instant
  /// The daemon's revision in the last bookmark; before there is one, the revision that the watch began with.
  var toldCurrent: UInt64
  /// The version of the channel's selection that the watcher was told.
  var toldSelection: UInt64
  /// When the next bookmark may be due.
  var timer = TimerSeat()

  init(session: Session, channel: FeedChannel, revision: UInt64, throttle: UInt64, now: Instant) {
    owner = .passUnretained(session)
    self.channel = channel
    self.throttle = throttle
    progress = .live
    queuedRevision = revision
    lastTold = now
    toldCurrent = revision
    // A new watcher assumes that nothing is selected.
    toldSelection = channel.selectionVersion &- (channel.feed.selection.isEmpty ? 0 : 1)
  }

  /// The session that the watch belongs to.
  ///
  /// - Precondition: the watch has not ended.
  var session: Session {
    assert(!isEnded, "an ended watch may outlive its session")
    return owner.takeUnretainedValue()
  }

  /// The revision that the watcher has once it has read what was made for it: the next delta's `from`.
  var revision: UInt64 { seat == .inStep ? channel.feed.revision : queuedRevision }

  var isEnded: Bool { seat == .ended }

  var isLive: Bool {
    if case .live = progress { return true }
    return false
  }

  var isSnapshotting: Bool {
    if case .snapshot = progress { return true }
    return false
  }

  /// How many revisions of its feed have passed since the one the watcher has.
  var lag: UInt64 { channel.feed.revision > revision ? channel.feed.revision - revision : 0 }
}
