/// Decides whether the caller of the log writes a batch itself, from the time that writes took.
///
/// A write to the system's memory takes microseconds, until a slow disk has too much left to store: then the system lets the
/// writer wait. One such wait is noticed; the thread of the log writes from then on, so that only the requests of its batches
/// wait. All times are of `MonotonicClock`.
struct WriteTimes {
  /// Nanoseconds from which on a write had to wait.
  private static let slow: UInt64 = 2_000_000
  /// Nanoseconds for which the thread writes after a wait: the first time, as a busy processor causes one, and at most.
  private static let pauses: (first: UInt64, last: UInt64) = (100_000_000, 10_000_000_000)

  private var resumesAt: UInt64 = 0
  private var pause = Self.pauses.first

  /// Whether the caller should write.
  func areShort(now: UInt64) -> Bool { now >= resumesAt }

  /// Records a write of the caller.
  mutating func didWrite(from start: UInt64, to end: UInt64) {
    if end &- start >= Self.slow {
      resumesAt = end &+ pause
      pause = min(pause &* 2, Self.pauses.last)
    } else if end &- resumesAt > Self.pauses.last {
      pause = Self.pauses.first
    }
  }

  /// Records a write of the thread.
  mutating func threadDidWrite(from start: UInt64, to end: UInt64) {
    if end < resumesAt, end &- start >= Self.slow { resumesAt = end &+ pause }
  }
}
