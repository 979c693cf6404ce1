import FeedModel
import FeedSystem

/// The daemon's clock: starts at the time of day and advances steadily, also while the machine is suspended. It starts later
/// than every stored time of an earlier process. So ages are right across restarts, and setting the time of day back has no
/// effect.
struct ServerClock {
  /// Nanoseconds to add to the clock since the boot. They wrap if the time of day is earlier, as without a hardware clock.
  private let offset: UInt64

  /// - Parameter stored: the latest stored time of an earlier process; 0 if there is none.
  init(after stored: UInt64) {
    offset = max(WallClock.now, stored &+ 1) &- BootClock.now
  }

  /// The nanoseconds by which a stored time may be later than the time of day without a warning.
  private static let tolerance: UInt64 = 60_000_000_000

  /// Says that the clock begins later than the time of day because of the latest stored time; nil unless it is much later. The
  /// time of day was wrong then, or is now.
  static func warning(after stored: UInt64) -> String? {
    guard stored > WallClock.now &+ tolerance else { return nil }
    return "the newest change was stored at \(WallClock.text(stored)), which is later than the system's clock; "
      + "elements with \"until\" expire too early until it reaches that time"
  }

  var now: Instant { Instant(nanoseconds: BootClock.now &+ offset) }

  /// Milliseconds from now until `deadline`, as a timeout. Waits do not count the time of a suspension, so they may end later
  /// after one, unless a client is connected or connects: see ``Engine/nextDeadline``.
  func milliseconds(until deadline: Instant) -> Int32 {
    MonotonicClock.milliseconds(from: now.nanoseconds, until: deadline.nanoseconds)
  }
}

/// The time of a cycle of the loop, and the number of cycles.
struct CycleTime {
  let clock: ServerClock
  private(set) var now: Instant
  private(set) var cycles = 0

  init(_ clock: ServerClock) { (self.clock, now) = (clock, clock.now) }

  mutating func beginCycle() {
    cycles &+= 1
    read()
  }

  /// Sets the time to that of the clock, in work that takes long.
  mutating func read() { now = clock.now }
}
