import FeedModel
import FeedSystem

/// The phases of the daemon's end.
///
/// The first request to end begins draining: `bye` is sent and queued output is written, for at most `drainTimeout`. A
/// second request ends draining immediately.
struct Shutdown {
  private enum Phase {
    case serving
    case draining(until: Instant)
    case over
  }

  private let drainTimeout: Duration
  private var phase = Phase.serving
  /// Whether the end was requested more than once. Then nothing that takes time is done.
  private(set) var isHurried = false
  /// Whether the state cannot be continued, and is loaded again from the group by another start.
  var mustRejoin = false

  init(drainTimeout: Duration) { self.drainTimeout = drainTimeout }

  /// Begins draining at the first request to end.
  /// - Returns: false if the daemon was already ending. It then ends immediately.
  mutating func request(now: Instant) -> Bool {
    switch phase {
    case .serving:
      phase = .draining(until: now.adding(nanoseconds: drainTimeout.clampedNanoseconds))
      return true
    case .draining:
      isHurried = true
      phase = .draining(until: now)
      return false
    case .over: return false
    }
  }

  /// Whether draining is over: no connection is left, or it timed out.
  func isDue(openConnections: Int, now: Instant) -> Bool {
    guard case .draining(let end) = phase else { return false }
    return openConnections == 0 || end <= now
  }

  /// Records that the daemon has ended.
  mutating func finish() { phase = .over }

  var isOver: Bool { if case .over = phase { true } else { false } }

  /// The time when draining times out; nil while serving.
  var deadline: Instant? { if case .draining(let end) = phase { end } else { nil } }
}
