/// How often a turn looks at the clock between its requests: after each one while they take long, otherwise seldom, because
/// most requests take less than the look.
struct ClockLooks {
  /// The number of requests until the next look, and between two looks.
  private var left = longest
  private var interval = longest
  /// The time that was left of the turn at the last look, in nanoseconds; nil before the first one.
  private var timeLeft: UInt64?

  private static let longest = 8
  /// The time between two looks after which the next ones come sooner, in nanoseconds.
  private static let longTime: UInt64 = 500_000

  /// Begins a series of several requests. Costs a look.
  mutating func begin(_ work: LongWork) {
    timeLeft = work.timeLeft
    left = interval
  }

  /// Called after each request. Returns whether the turn's time for requests that change feeds is used up, as far as the
  /// clock was looked at.
  @inline(__always)
  mutating func isTurnOver(_ work: @autoclosure () -> LongWork) -> Bool {
    left -= 1
    return left <= 0 && look(work())
  }

  @inline(never)
  private mutating func look(_ work: LongWork) -> Bool {
    let now = work.timeLeft
    // After the end of the turn's time, the time of requests is not known.
    if let timeLeft, timeLeft > 0 {
      interval = timeLeft &- now >= Self.longTime ? max(1, interval / 2) : min(Self.longest, interval * 2)
    }
    (timeLeft, left) = (now, interval)
    return now == 0
  }
}
