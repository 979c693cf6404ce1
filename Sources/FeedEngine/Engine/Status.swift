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

  /// The client and the feed that an event is about, for logs that have fields.
  public struct Subject: Sendable, Equatable {
    public var uid: UInt32?
    public var pid: Int32?
    public var feed: String?

    public init(uid: UInt32? = nil, pid: Int32? = nil, feed: String? = nil) {
      self.uid = uid
      self.pid = pid
      self.feed = feed
    }
  }

  public let level: Level
  /// A sentence with what names the connection: uid, pid, client, bytes, limit.
  public let message: String
  public let subject: Subject
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

/// Bounds the lines of the log about connections that are closed, which a hostile client could ask for by thousands.
///
/// A few lines a second have their own level; the rest are debug lines, and their number is told.
struct ClosingLines {
  private var until = Instant(nanoseconds: 0)
  private var count = 0
  private var leftOut = 0

  /// Lines of one second at their own level.
  static let perSecond = 20

  /// Counts a line. Returns whether it has its own level, and how many did not in the second before this one.
  mutating func add(now: Instant) -> (isReported: Bool, leftOut: Int) {
    var before = 0
    if now >= until {
      before = leftOut
      (count, leftOut) = (0, 0)
      until = now.adding(seconds: 1)
    }
    count += 1
    if count > Self.perSecond { leftOut += 1 }
    return (count <= Self.perSecond, before)
  }
}

/// What the daemon reports about itself: counters, the time of its start, and events for the log.
struct Status {
  /// Incremented by whatever does the work that is counted.
  var counters = Counters()
  let startedAt: Instant
  private var closings = ClosingLines()
  /// The sink of events. Set by the owner of the engine.
  var log: (EngineEvent) -> Void = { _ in }

  init(startedAt: Instant) {
    self.startedAt = startedAt
  }

  /// Reports that a connection is being closed; beyond some lines a second, as a debug line.
  mutating func reportClosing(
    _ level: EngineEvent.Level, _ message: String, about subject: EngineEvent.Subject = .init(), now: Instant
  ) {
    if level == .debug { return report(level, message, about: subject) }
    let (isReported, leftOut) = closings.add(now: now)
    if leftOut > 0 { report(.warning, "\(leftOut) more connections were closed; the debug level has a line for each") }
    report(isReported ? level : .debug, message, about: subject)
  }

  func report(_ level: EngineEvent.Level, _ message: String, about subject: EngineEvent.Subject = .init()) {
    log(EngineEvent(level: level, message: message, subject: subject))
  }
}
