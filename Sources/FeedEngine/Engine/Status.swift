import FeedModel

/// Something that happened to a connection and is worth a line in the log.
public struct EngineEvent: Sendable, Equatable {
  public enum Level: Int, Sendable, Comparable {
    case error = 3
    case warning = 4
    case info = 6
    case debug = 7

    public static func < (a: Level, b: Level) -> Bool { a.rawValue < b.rawValue }
  }

  public let level: Level
  /// A sentence with what names the connection: uid, pid, client, bytes, limit.
  public let message: String
}

/// Counts of events since the daemon started, as `stats` reports them. They only grow.
struct Counters {
  var connections: UInt64 = 0
  var refusedConnections: UInt64 = 0
  var requests: UInt64 = 0
  var errors: UInt64 = 0
  var commits: UInt64 = 0
  var deltas: UInt64 = 0
  var composedDeltas: UInt64 = 0
  var snapshots: UInt64 = 0
  var resets: UInt64 = 0
  var bytesIn: UInt64 = 0
  var bytesOut: UInt64 = 0
}

/// What the daemon reports about itself: counters, the time of its start, and events for the log.
struct Status {
  /// Incremented by whatever does the work that is counted.
  var counters = Counters()
  let startedAt: Instant
  /// The sink of events. Set by the owner of the engine.
  var log: (EngineEvent) -> Void = { _ in }

  init(startedAt: Instant) {
    self.startedAt = startedAt
  }

  func report(_ level: EngineEvent.Level, _ message: String) {
    log(EngineEvent(level: level, message: message))
  }
}
