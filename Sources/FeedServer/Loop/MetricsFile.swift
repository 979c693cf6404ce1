import FeedEngine
import FeedJSON
import FeedModel
import FeedSystem
import FeedWire

/// The file of `--metrics-file`, for the textfile collector of node_exporter.
///
/// It is replaced atomically. Of consecutive failures, only the first is logged.
struct MetricsFile {
  /// Nanoseconds between two writes.
  private static let interval: UInt64 = 15_000_000_000

  private let path: String
  private let log: Log
  /// The time to call ``write(_:now:)``.
  private(set) var deadline: Instant
  private var hasFailed = false

  init(_ path: String, _ log: Log, now: Instant) {
    self.path = path
    self.log = log
    deadline = now
  }

  /// Writes the file if it is time.
  mutating func write(_ engine: Engine, now: Instant) {
    guard now >= deadline else { return }
    deadline = now.adding(nanoseconds: Self.interval)
    var json = ByteBuffer()
    engine.appendStatistics(to: &json)
    var scanner = JSONScanner()
    guard let stats = try? scanner.scan(json.bytes) else { return }
    do throws(SystemError) {
      try SmallFile.replace(path, with: Array(Metrics.text(of: stats).utf8), isPublic: true)
      hasFailed = false
    } catch {
      if !hasFailed { log.write(.error, "cannot write metrics: \(error)") }
      hasFailed = true
    }
  }
}
