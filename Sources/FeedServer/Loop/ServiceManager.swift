import FeedEngine
import FeedJSON
import FeedModel
import FeedSystem
import FeedWire

/// The connection to the service manager: state notifications and the watchdog's keep-alive messages.
///
/// Without a service manager all calls do nothing. A message that cannot be sent is logged and otherwise ignored.
struct ServiceManager {
  private let notify: Notify
  private let log: Log
  /// Nanoseconds between two keep-alive messages, half of the watchdog's timeout; nil without a watchdog.
  private let interval: UInt64?
  /// The time of the next keep-alive message; nil without a watchdog.
  private(set) var deadline: Instant?
  private var nextRequest = Instant(nanoseconds: 0)

  init(_ notify: Notify, _ log: Log, now: Instant) {
    (self.notify, self.log) = (notify, log)
    interval = notify.watchdogInterval.map { $0.clampedNanoseconds / 2 }
    deadline = interval == nil ? nil : now
  }

  /// Sends the messages as one notification.
  func tell(_ messages: Notify.Message...) {
    do throws(SystemError) { try notify.send(messages) } catch { log.write(.warning, "\(error)") }
  }

  /// Asks about once a second for more time to end, and sends a keep-alive message if one is due.
  mutating func askForTime(now: Instant) {
    if now < nextRequest { return }
    nextRequest = now.adding(seconds: 1)
    tell(.extendTimeout(.seconds(30)))
    attend(now: now)
  }

  /// Sends a keep-alive message if one is due.
  mutating func attend(now: Instant) {
    assert((interval == nil) == (deadline == nil), "the watchdog has an interval and a next moment, or neither")
    guard let interval, let moment = deadline, moment <= now else { return }
    deadline = now.adding(nanoseconds: interval)
    tell(.watchdog)
  }
}

/// Whether the commit log stores batches, and the reports when this changes.
///
/// Only the first of consecutive failures and the first success after them are reported.
struct LogHealth {
  /// A line for the daemon's log and one for the service manager.
  struct Report: Equatable {
    var line: String
    var status: String
    var isFailure = true
  }

  /// The batches that failed since the last one that was stored, as reported.
  private var failedBatches = 0

  /// Takes the number of batches that failed since the last one that was stored, and why the last of them did. O(1), without
  /// allocation if there was no failure.
  mutating func note(failedBatches failed: Int, _ reason: @autoclosure () -> String) -> Report? {
    let before = failedBatches
    failedBatches = failed == 0 ? 0 : max(failed, before)
    if (before == 0) == (failed == 0) { return nil }
    if before == 0 {
      return Report(
        line: "\(reason()); changes are refused until storing works again", status: "cannot store: \(reason())")
    }
    return Report(
      line: "storing works again; \(before) \(before == 1 ? "batch was" : "batches were") refused",
      status: "listening; storing works again", isFailure: false)
  }
}

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
    (self.path, self.log) = (path, log)
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
