import Glibc

/// The clock that timers run on: nanoseconds since an unknown start; it is never set back.
public enum MonotonicClock {
  /// The time now in nanoseconds. A few tens of nanoseconds (vDSO).
  public static var now: UInt64 { nanoseconds(CLOCK_MONOTONIC) }

  /// Milliseconds from now until `deadline`, rounded up so that a wait does not end early; 0 when it has passed.
  /// Shaped for `poll` and `epoll_wait`: never negative.
  public static func milliseconds(until deadline: UInt64) -> Int32 {
    let now = now
    guard deadline > now else { return 0 }
    let (whole, rest) = (deadline - now).quotientAndRemainder(dividingBy: 1_000_000)
    return Int32(clamping: whole &+ (rest > 0 ? 1 : 0))
  }
}

/// The time of day.
public enum WallClock {
  /// Nanoseconds since 1970-01-01 00:00 UTC. An operator may set it back.
  public static var now: UInt64 { nanoseconds(CLOCK_REALTIME) }
}

private func nanoseconds(_ clock: clockid_t) -> UInt64 {
  var time = timespec()
  clock_gettime(clock, &time)
  return UInt64(truncatingIfNeeded: time.tv_sec) &* 1_000_000_000 &+ UInt64(truncatingIfNeeded: time.tv_nsec)
}

extension Duration {
  /// Whole nanoseconds, from 0 to about 292 years; longer and negative ones are brought into that range.
  public var clampedNanoseconds: UInt64 {
    let (seconds, attoseconds) = components
    guard seconds >= 0, attoseconds >= 0 else { return 0 }
    guard seconds < 9_000_000_000 else { return 9_000_000_000_000_000_000 }
    return UInt64(seconds) * 1_000_000_000 + UInt64(attoseconds) / 1_000_000_000
  }
}
