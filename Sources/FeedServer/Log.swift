import FeedEngine
import FeedJSON
import FeedSystem

/// The daemon's log on standard error: one line for each event.
///
/// Writing never blocks: a line that does not fit in the pipe is discarded, and so is the rest of one for which a terminal that
/// nobody reads has no room. Clients cannot flood the log: each level
/// except debug has a maximum number of lines a second. A later line reports the number of missing lines.
public final class Log {
  /// The beginning of a line.
  public enum Style: Sendable {
    /// `<6>`: the journal strips the priority and adds the time. Lines with fields go to its socket.
    case journal
    /// The UTC time and the level.
    case timestamps
  }

  /// The maximum bytes of a message: a writable pipe accepts PIPE_BUF bytes atomically, including the beginning of the
  /// line.
  private static let longestMessage = 4000

  /// The least severe level that is written.
  var threshold: LogLevel
  let style: Style
  private let descriptor: Int32
  /// The terminal at `descriptor`, which is called writable also if it has room for only a part of a line; nil for other files.
  private let terminal: Descriptor?
  private let linesPerSecond: Int
  private let clock: () -> UInt64
  /// The destination of lines with fields; nil if they are written like other lines.
  private let journal: JournalSocket?
  /// The number of lines discarded because the reader was too slow.
  private var dropped = 0
  /// By level: the current second, the lines written in it, and the lines omitted since the last report.
  private var rates: [(second: UInt64, written: Int, leftOut: Int)]

  /// - Parameters:
  ///   - linesPerSecond: the maximum lines of one level in a second. Debug lines are not limited.
  ///   - journal: receives lines with fields, if the style is `journal`.
  ///   - clock: returns nanoseconds of a monotonic clock.
  public init(
    threshold: LogLevel, style: Style, descriptor: Int32 = StandardStreams.error, journal: JournalSocket? = nil,
    linesPerSecond: Int = 200, clock: @escaping () -> UInt64 = { MonotonicClock.now }
  ) {
    self.journal = style == .journal ? journal : nil
    (self.threshold, self.style, self.descriptor) = (threshold, style, descriptor)
    terminal = Descriptor(nonblockingTerminal: descriptor)
    (self.linesPerSecond, self.clock) = (linesPerSecond, clock)
    rates = Array(repeating: (0, 0, 0), count: LogLevel.debug.rawValue + 1)
  }

  /// Writes one line. Replaces control characters in `message`, so that no client can forge a line.
  /// - Parameter fields: the subject of the line, for `journalctl FIELD=VALUE`; other styles write only the message.
  public func write(_ level: LogLevel, _ message: @autoclosure () -> String, _ fields: [JournalSocket.Field] = []) {
    guard level <= threshold, isWithinRate(level) else { return }
    if let journal, !fields.isEmpty {
      let text = message()
      let head = [
        JournalSocket.Field("MESSAGE", Self.clean(text)), JournalSocket.Field("PRIORITY", "\(level.rawValue)"),
        JournalSocket.Field("SYSLOG_IDENTIFIER", "feedd"),
      ]
      if journal.send(head + fields.map { JournalSocket.Field($0.name, Self.clean($0.value)) }) { return }
      return writeLine(level, text)
    }
    writeLine(level, message())
  }

  private func writeLine(_ level: LogLevel, _ message: @autoclosure () -> String) {
    guard isWritable else {
      dropped &+= 1
      return
    }
    if dropped > 0 {
      let count = dropped
      dropped = 0
      put(.warning, "\(counted(count, "line")) missing here: the reader of the log was too slow")
      guard isWritable else {
        dropped = 1
        return
      }
    }
    put(level, message())
  }

  /// Counts a line. Returns false if its level has reached the maximum of this second. The first line of a later second
  /// reports the number of omitted lines.
  private func isWithinRate(_ level: LogLevel) -> Bool {
    if level == .debug { return true }
    let second = clock() / 1_000_000_000
    if rates[level.rawValue].second != second {
      let leftOut = rates[level.rawValue].leftOut
      let isReported = leftOut > 0 && isWritable
      rates[level.rawValue] = (second, 0, isReported ? 0 : leftOut)
      if isReported {
        put(
          level, "\(counted(leftOut, "\(level.name) line")) left out: more than \(grouped(linesPerSecond)) in a second")
      }
    }
    if rates[level.rawValue].written == linesPerSecond {
      rates[level.rawValue].leftOut += 1
      return false
    }
    rates[level.rawValue].written += 1
    return true
  }

  private var isWritable: Bool { (try? Readiness.writable.wait(on: descriptor, timeout: .zero)) == .writable }

  private func put(_ level: LogLevel, _ message: String) {
    let head = style == .journal ? "<\(level.rawValue)>" : "\(WallClock.text) \(level.name): "
    let line = head + Self.clean(message) + "\n"
    // A failure to write the log cannot be reported.
    if terminal != nil { terminal?.writeAtOnce(line) } else { try? StandardStreams.writeAll(line, to: descriptor) }
  }

  private static func clean(_ message: String) -> String {
    var text = String.UnicodeScalarView()
    var length = 0
    for scalar in message.unicodeScalars {
      length += UTF8.width(scalar)
      if length > longestMessage { break }
      text.append(scalar.inLine)
    }
    return String(text)
  }
}
