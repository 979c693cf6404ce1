/// How long to rest before the next attempt: twice as long after each failure, within bounds.
struct Backoff: Equatable, Sendable {
  /// 50 ms: a daemon that restarts is back in a few of these.
  static let first: UInt64 = 50_000_000
  /// 5 s: how long a daemon that comes back late stays unnoticed at most.
  static let longest: UInt64 = 5_000_000_000

  private var upcoming = Backoff.first

  /// The rest before the next attempt, in nanoseconds.
  mutating func next() -> UInt64 {
    defer { upcoming = min(upcoming * 2, Self.longest) }
    return upcoming
  }

  /// An attempt succeeded.
  mutating func reset() { upcoming = Self.first }
}
