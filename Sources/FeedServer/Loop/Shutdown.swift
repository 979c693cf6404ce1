import FeedModel
import FeedSystem

/// The phases of the daemon's end.
///
/// The first request to end begins draining: `bye` is sent and queued output is written, for at most `drainTimeout`. A
/// second request ends draining immediately.
struct Shutdown {
  private enum Phase {
    case serving
    case requested(cause: String)
    case draining(until: Instant)
    case over
  }

  private let drainTimeout: Duration
  private var phase = Phase.serving
  /// Whether the end was requested more than once. Then nothing that takes time is done.
  private(set) var isHurried = false
  /// Whether the daemon begins again from the state of its group.
  var mustRejoin = false

  init(drainTimeout: Duration) { self.drainTimeout = drainTimeout }

  /// Records a request to end.
  /// - Returns: false if the daemon was already ending. It then ends immediately.
  mutating func request(_ cause: String, now: Instant) -> Bool {
    switch phase {
    case .serving:
      phase = .requested(cause: cause)
      return true
    case .requested, .draining:
      isHurried = true
      phase = .draining(until: now)
      return false
    case .over: return false
    }
  }

  /// Begins draining if the end was requested. Returns the cause of the request; nil if there was none.
  mutating func begin(now: Instant) -> String? {
    guard case .requested(let cause) = phase else { return nil }
    phase = .draining(until: now.adding(nanoseconds: drainTimeout.clampedNanoseconds))
    return cause
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
