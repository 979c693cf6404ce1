import FeedModel
import FeedSystem

/// The daemon's one line of time: the time of day when it started, going on with the monotonic clock, and never behind what an
/// earlier run stored. So ages are right across restarts, and setting the time of day back confuses nothing.
struct ServerClock {
  /// Nanoseconds to add to the monotonic clock.
  private let offset: UInt64

  /// - Parameter stored: the newest moment of an earlier run; 0 when there is none.
  init(after stored: UInt64) {
    offset = max(WallClock.now, stored &+ 1) &- MonotonicClock.now
  }

  var now: Instant { Instant(nanoseconds: MonotonicClock.now &+ offset) }

  /// Milliseconds from now until `deadline`, for a wait.
  func milliseconds(until deadline: Instant) -> Int32 {
    let moment = deadline.nanoseconds
    return MonotonicClock.milliseconds(until: moment > offset ? moment &- offset : 0)
  }
}
