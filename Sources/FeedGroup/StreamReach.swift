/// Since when the log of a group is unreachable, and why.
struct StreamReach {
  private static let second: UInt64 = 1_000_000_000
  /// Nanoseconds without a message after which the consumer is silent.
  private static let silence = 2 * second
  /// Nanoseconds without an answer after which the stream has no leader.
  private static let patience = 6 * second

  /// Nil if it is reachable.
  private(set) var unreachableSince: UInt64?
  private(set) var reason = "not connected yet"
  /// When the stream's side was last heard of.
  private var heardAt: UInt64

  init(now: UInt64) { (heardAt, unreachableSince) = (now, now) }

  mutating func didFail(_ reason: String) { self.reason = reason }

  mutating func becomeUnreachable(_ reason: String, since time: UInt64) {
    self.reason = reason
    unreachableSince = unreachableSince ?? time
  }

  /// Records that nothing is followed any more.
  mutating func end() { unreachableSince = unreachableSince ?? heardAt }

  mutating func didHear(_ now: UInt64) { heardAt = now }

  /// Looks whether a consumer that delivers is silent. Returns whether another one is needed.
  mutating func isSilent(_ now: UInt64) -> Bool {
    guard now &- heardAt >= Self.silence else { return false }
    becomeUnreachable("the servers do not answer", since: heardAt)
    return true
  }

  /// Looks whether the stream has a leader: a consumer may still be served by a server that cannot reach it. Returns whether the log
  /// has become reachable.
  /// - Parameter answeredAt: when the leader told the state of the stream.
  mutating func look(answeredAt: UInt64, now: UInt64) -> Bool {
    guard now &- answeredAt < Self.patience else {
      if unreachableSince == nil { becomeUnreachable("the stream has no leader", since: answeredAt) }
      return false
    }
    defer { unreachableSince = nil }
    return unreachableSince != nil
  }
}
