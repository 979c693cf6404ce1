import FeedJSON
import FeedModel

/// An event of a connection, for the log.
public struct EngineEvent: Sendable, Equatable {
  /// The client and the feed of an event, for logs with fields.
  public struct Subject: Sendable, Equatable {
    public var uid: UInt32?
    public var pid: Int32?
    public var feed: String?

    public init(uid: UInt32? = nil, pid: Int32? = nil, feed: String? = nil) {
      (self.uid, self.pid, self.feed) = (uid, pid, feed)
    }
  }

  public let level: LogLevel
  /// One sentence that identifies the connection: uid, pid, client, bytes, limit.
  public let message: String
  public let subject: Subject
}

/// The level of a log line. The numbers are those of syslog.
public enum LogLevel: Int, Comparable, Sendable, CaseIterable {
  case error = 3
  case warning = 4
  case notice = 5
  case info = 6
  case debug = 7

  /// The name in `--log-level`, in `logLevel` and in lines with a timestamp.
  public var name: String { "\(self)" }

  public init?(name: String) {
    guard let level = Self.allCases.first(where: { $0.name == name }) else { return nil }
    self = level
  }

  public static func < (a: LogLevel, b: LogLevel) -> Bool { a.rawValue < b.rawValue }
}

/// The gauges in `stats` that only the owner of the process can read.
public struct ProcessGauges {
  /// The memory in use, in bytes.
  public var memoryBytes: Int
  /// The bytes of the newest image, and of the segments of the log; 0 if nothing is stored.
  public var imageBytes: Int
  public var segmentBytes: Int
  /// The moment of the newest image, in seconds since 1970; 0 if there is none.
  public var imagedAt: Int

  public init(memoryBytes: Int = 0, imageBytes: Int = 0, segmentBytes: Int = 0, imagedAt: Int = 0) {
    (self.memoryBytes, self.imageBytes, self.segmentBytes) = (memoryBytes, imageBytes, segmentBytes)
    self.imagedAt = imagedAt
  }
}

/// The log that several hosts share, for `hello`, `stats`, `describe` and `group`.
public struct SharedLog {
  public var group: String
  /// `connected`, `left`, or `unreachable since` a time.
  public var log: String
  /// The last message that was read, the last one of the log, and the number of members.
  public var position: UInt64
  public var last: UInt64
  public var members: Int
  /// All that is known, as members of a JSON object.
  public var details: String

  public init(group: String, log: String, position: UInt64, last: UInt64, members: Int, details: String) {
    (self.group, self.log, self.position, self.last) = (group, log, position, last)
    (self.members, self.details) = (members, details)
  }

  /// Appends `,"group":"…","log":"…"`.
  func append(to out: inout ByteBuffer) {
    out.append(",\"group\":", quoted: group)
    out.append(",\"log\":", quoted: log)
  }
}

/// What `group` asks the owner of the engine to do.
public enum GroupAction: String, Sendable, CaseIterable {
  case leave, join, image
}

/// Counters of events since the daemon started, as in `stats`. They only increase.
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

/// Limits the number of log lines about closed connections, because a hostile client could cause thousands.
///
/// A number of lines a second keep their level. The others become debug lines, and the next line reports their number.
struct ClosingLines {
  private var until = Instant(nanoseconds: 0)
  private var count = 0
  private var leftOut = 0

  /// The maximum number of lines in a second that keep their level.
  static let perSecond = 20

  /// Counts a line. Returns whether it keeps its level, and how many lines of the previous second did not.
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

/// The daemon's identity, its start time, its counters, and what the engine asks its owner, who sets the functions.
package struct Status {
  let identity: ServerIdentity
  /// The facts for `hello`, encoded.
  var greeting: Greeting
  /// The counters. The code that does the counted work increments them.
  var counters = Counters()
  let startedAt: Instant
  private var closings = ClosingLines()
  package var log: (EngineEvent) -> Void = { _ in }
  /// The least severe level that is logged.
  package var threshold = LogLevel.info { didSet { useThreshold(threshold) } }
  /// Called when the method `logLevel` sets the threshold.
  package var useThreshold: (LogLevel) -> Void = { _ in }
  package var process: () -> ProcessGauges = { ProcessGauges() }
  /// Reads the state of the log that several hosts share; nil for a daemon of its own.
  package var sharedLog: (() -> SharedLog)?
  /// Does what the method `group` asks for.
  package var groupAction: (GroupAction) -> Void = { _ in }

  init(_ identity: ServerIdentity, _ limits: Limits, startedAt: Instant) {
    self.identity = identity
    greeting = Greeting(identity, limits)
    self.startedAt = startedAt
  }

  /// Reports that a connection is being closed. Above the maximum rate, the report is a debug line.
  mutating func reportClosing(
    _ level: LogLevel, _ message: String, about subject: EngineEvent.Subject = .init(), now: Instant
  ) {
    if level == .debug { return report(level, message, about: subject) }
    let (isReported, leftOut) = closings.add(now: now)
    if leftOut > 0 {
      report(.warning, "\(grouped(leftOut)) more connections were closed; the debug level has a line for each")
    }
    report(isReported ? level : .debug, message, about: subject)
  }

  func report(_ level: LogLevel, _ message: String, about subject: EngineEvent.Subject = .init()) {
    log(EngineEvent(level: level, message: message, subject: subject))
  }
}
