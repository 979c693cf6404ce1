import FeedSystem

/// The daemon's log on standard error: one line an event.
///
/// A line never waits for its reader: one that does not fit into the pipe is dropped, and the next that fits says how many
/// were.
public final class Log {
  /// How a line begins.
  public enum Style: Sendable {
    /// `<6>`: the journal takes the priority off and adds the time itself.
    case journal
    /// The time in UTC and the level.
    case timestamps
  }

  /// A pipe that is ready for writing takes at least this many bytes at once (PIPE_BUF less room for the line's beginning).
  private static let longestMessage = 4000

  private let threshold: LogLevel
  private let style: Style
  private let descriptor: Int32
  private var dropped = 0

  public init(threshold: LogLevel, style: Style, descriptor: Int32 = StandardStreams.error) {
    self.threshold = threshold
    self.style = style
    self.descriptor = descriptor
  }

  /// Whether lines of this level are written: the caller may spare the making of a message.
  public func isEnabled(_ level: LogLevel) -> Bool { level <= threshold }

  /// Writes one line. Control characters in `message` are replaced, so that no client can forge a line.
  public func write(_ level: LogLevel, _ message: @autoclosure () -> String) {
    guard isEnabled(level) else { return }
    guard isWritable else {
      dropped &+= 1
      return
    }
    if dropped > 0 {
      let count = dropped
      dropped = 0
      put(.warning, "\(count) lines before this one are missing: the reader of the log was too slow")
      guard isWritable else {
        dropped = 1
        return
      }
    }
    put(level, message())
  }

  private var isWritable: Bool { (try? Readiness.writable.wait(on: descriptor, timeout: .zero)) == .writable }

  private func put(_ level: LogLevel, _ message: String) {
    let head = style == .journal ? "<\(level.rawValue)>" : "\(WallClock.text) \(level.name): "
    // There is nobody to tell when the log itself cannot be written.
    try? StandardStreams.writeAll(head + Self.clean(message) + "\n", to: descriptor)
  }

  private static func clean(_ message: String) -> String {
    var text = String.UnicodeScalarView()
    var length = 0
    for scalar in message.unicodeScalars {
      length += UTF8.width(scalar)
      if length > longestMessage { break }
      let isControl =
        scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value) || (0x2028...0x2029).contains(scalar.value)
      text.append(isControl ? "\u{FFFD}" : scalar)
    }
    return String(text)
  }
}

/// How much a line of the log matters; the numbers are syslog's.
public enum LogLevel: Int, Comparable, Sendable, CaseIterable {
  case error = 3
  case warning = 4
  case notice = 5
  case info = 6
  case debug = 7

  /// The word of `--log-level` and of the lines with a timestamp.
  public var name: String {
    switch self {
    case .error: "error"
    case .warning: "warning"
    case .notice: "notice"
    case .info: "info"
    case .debug: "debug"
    }
  }

  public init?(name: String) {
    guard let level = Self.allCases.first(where: { $0.name == name }) else { return nil }
    self = level
  }

  public static func < (a: LogLevel, b: LogLevel) -> Bool { a.rawValue < b.rawValue }
}
