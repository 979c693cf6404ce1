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
/// A watch that is not live costs nothing while its feed changes: what it missed is composed when it can be sent. Nor
/// does one that is live and in step, until the end of the turn.
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

  /// The session has its watches taken from their feeds before it goes.
  unowned(unsafe) let session: Session
  let channel: FeedChannel
  var state: State
  /// The revision that the watcher knows of once it has read what is queued for it.
  var queuedRevision: UInt64
  /// The feed's revision whose rows the watcher then has; ahead of `queuedRevision` when what came since has undone itself.
  var queuedPosition: UInt64
  /// Whether the watch gets the deltas that all get, which are queued for it at the end of the turn.
  var isInStep = false
  /// Up to where it was given the channel's buffer of this turn, while it is in step.
  var given = 0
  /// Its place in the channel's list.
  var place = 0
  /// The least time between two deltas, in nanoseconds; 0 for none.
  let throttle: UInt64
  /// When the next delta may be queued.
  var nextDelta = Instant(nanoseconds: 0)
  /// When the watcher was last told anything.
  var lastTold: Instant
  /// The daemon's revision in the last bookmark; before there is one, the revision that the watch began with.
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
    queuedRevision = revision
    queuedPosition = revision
    self.throttle = throttle
    lastTold = now
    toldCurrent = revision
  }

  /// The revision that the watcher knows of once it has read what was made for it: the next delta's `from`.
  var revision: UInt64 { isInStep ? channel.feed.revision : queuedRevision }

  /// The feed's revision whose rows the watcher then has.
  var position: UInt64 { isInStep ? channel.feed.revision : queuedPosition }

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
