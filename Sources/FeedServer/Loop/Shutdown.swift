import FeedModel
import FeedSystem

/// How far the daemon is on its way to its end.
///
/// The first request to end begins draining: clients are told and queued output is written, for `drainTimeout` at most. A
/// second request ends the draining at once.
struct Shutdown {
  private enum Phase {
    case serving
    case requested(cause: String)
    case draining(until: Instant)
    case over
  }

  private let drainTimeout: Duration
  private var phase = Phase.serving
  /// Whether the end was requested more than once: nothing that takes time is done any more.
  private(set) var isHurried = false

  init(drainTimeout: Duration) { self.drainTimeout = drainTimeout }

  /// Takes a request to end.
  /// - Returns: false when the daemon was ending already, so that it now ends at once.
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

  /// The cause of a request that was not acted upon yet; draining begins with this call. nil when there is none.
  mutating func begin(now: Instant) -> String? {
    guard case .requested(let cause) = phase else { return nil }
    phase = .draining(until: now.adding(nanoseconds: drainTimeout.clampedNanoseconds))
    return cause
  }

  /// Whether draining is over: no connection is left, or the time is up.
  func isDue(openConnections: Int, now: Instant) -> Bool {
    guard case .draining(let end) = phase else { return false }
    return openConnections == 0 || end <= now
  }

  /// Marks the daemon as ended.
  mutating func finish() { phase = .over }

  var isOver: Bool { if case .over = phase { true } else { false } }

  /// When draining ends at the latest; nil while serving.
  var deadline: Instant? { if case .draining(let end) = phase { end } else { nil } }
}
