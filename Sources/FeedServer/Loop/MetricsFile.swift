import FeedEngine
import FeedJSON
import FeedModel
import FeedSystem
import FeedWire

/// The file of `--metrics-file`, which the textfile collector of node_exporter reads.
///
/// It is replaced as a whole, so a reader never sees half of it. A failure is logged once, until a write succeeds.
struct MetricsFile {
  /// The time between two writes: 15 s.
  private static let interval: UInt64 = 15_000_000_000

  private let path: String
  private let log: Log
  private var due: Instant
  private var hasFailed = false

  init(_ path: String, _ log: Log, now: Instant) {
    self.path = path
    self.log = log
    due = now
  }

  /// When ``write(_:now:)`` is due.
  var deadline: Instant { due }

  /// Writes the file if it is due.
  mutating func write(_ engine: Engine, now: Instant) {
    guard now >= due else { return }
    due = now.adding(nanoseconds: Self.interval)
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
