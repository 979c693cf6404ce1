import FeedModel

/// One connection's watch of one feed: a state machine of where the watcher's copy stands.
///
/// ```
///            snapshot parts sent          delta made while the queue is full,
///  snapshot ───────────────────▶ behind    or the throttle's time is not over
///      ▲                         │   ▲ ───────────────────────────────┐
///      │ out of reach            ▼   │                                │
///      └──────────────────── catching up ──────────────────────────▶ live
/// ```
///
/// A watch that is not live costs nothing while its feed changes: what it missed is composed when it can be sent.
/// Guarded by the engine's thread.
final class Watch {
  enum State {
    /// Every delta is queued as it is made.
    case live
    /// The copy is at `revision`; what came since is composed once the queue has room and the throttle allows it.
    case behind
    /// A snapshot is being sent in parts.
    case snapshot(SnapshotCursor)
  }

  unowned let session: Session
  let channel: FeedChannel
  var state: State
  /// The revision that the watcher knows of once it has read what is queued for it: the next delta's `from`.
  var revision: UInt64
  /// The feed's revision whose rows the watcher then has; ahead of `revision` when what came since has undone itself.
  var position: UInt64
  /// The least time between two deltas, in nanoseconds; 0 for none.
  let throttle: UInt64
  /// When the next delta may be queued.
  var nextDelta = Instant(nanoseconds: 0)
  /// When the watcher was last told anything.
  var lastTold: Instant
  /// The daemon's revision in the last bookmark, or at the last delta.
  var toldCurrent: UInt64
  /// Composes what was missed, over several turns when it is much.
  var catchUp: CatchUp?
  /// Whether the watch is on the engine's list of those that are not live.
  var isPending = false
  var isEnded = false
  /// Whether the selection changed since the watcher was told of it.
  var owesSelection = false

  init(session: Session, channel: FeedChannel, state: State, revision: UInt64, throttle: UInt64, now: Instant) {
    self.session = session
    self.channel = channel
    self.state = state
    self.revision = revision
    position = revision
    self.throttle = throttle
    lastTold = now
    toldCurrent = revision
  }

  var isLive: Bool {
    if case .live = state { return true }
    return false
  }

  var isSnapshotting: Bool {
    if case .snapshot = state { return true }
    return false
  }

  /// Lets the next delta go without waiting for the throttle.
  func hurry() {
    nextDelta = Instant(nanoseconds: 0)
  }
}
