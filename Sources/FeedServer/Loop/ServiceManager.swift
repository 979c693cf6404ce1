import FeedEngine
import FeedJSON
import FeedModel
import FeedSystem
import FeedWire

/// The connection to the service manager: state notifications and the watchdog's keep-alive messages.
///
/// A busy service manager may have no room for a notification. It is then sent again, because a service whose `READY=1` or
/// keep-alive messages are missing is stopped. One that cannot be sent for another reason is dropped. Of consecutive failures
/// only the first is logged. Without a service manager all calls do nothing.
struct ServiceManager {
  /// Nanoseconds before notifications for which there was no room are sent again: at first, and at most after several attempts.
  private static let (shortestPause, longestPause): (UInt64, UInt64) = (50_000_000, 1_000_000_000)
  /// The number of notifications that wait for room.
  private static let maxWaiting = 32

  private let notify: Notify
  private let log: Log
  /// Nanoseconds between two keep-alive messages, half of the watchdog's timeout; nil without a watchdog.
  private let interval: UInt64?
  /// The time of the next keep-alive message; nil without a watchdog.
  private var nextSign: Instant?
  /// The notifications for which there was no room, in order, and when they are sent again.
  private var waiting: [[Notify.Message]] = []
  private var nextTry = Instant(nanoseconds: 0)
  private var pause = Self.shortestPause
  private var nextRequest = Instant(nanoseconds: 0)
  private var hasFailed = false

  init(_ notify: Notify, _ log: Log, now: Instant) {
    (self.notify, self.log) = (notify, log)
    interval = notify.watchdogInterval.map { $0.clampedNanoseconds / 2 }
    nextSign = interval == nil ? nil : now
  }

  /// The time to call ``attend(now:)``; nil if there is none.
  var deadline: Instant? {
    if waiting.isEmpty { return nextSign }
    return nextSign.map { min($0, nextTry) } ?? nextTry
  }

  /// Sends the messages as one notification, behind those that wait for room. If too many wait, the oldest one is dropped that
  /// does not tell the state of the service, or else the oldest.
  mutating func tell(_ messages: Notify.Message...) {
    if waiting.count == Self.maxWaiting { waiting.remove(at: waiting.firstIndex { !Self.tellsState($0) } ?? 0) }
    waiting.append(messages)
    sendWaiting()
  }

  private static func tellsState(_ messages: [Notify.Message]) -> Bool {
    messages.contains { $0 == .ready || $0 == .reloading || $0 == .stopping }
  }

  private mutating func sendWaiting() {
    while let messages = waiting.first, send(messages) { waiting.removeFirst() }
    if waiting.isEmpty { pause = Self.shortestPause }
  }

  /// Sends a notification. Returns false if there is no room for it now.
  private mutating func send(_ messages: [Notify.Message]) -> Bool {
    do throws(SystemError) {
      try notify.send(messages)
      hasFailed = false
      return true
    } catch {
      if !hasFailed { log.write(.warning, "\(error)") }
      hasFailed = true
      return !error.isShortage
    }
  }

  /// Asks about once a second for more time to end, and sends what else is due.
  mutating func askForTime(now: Instant) {
    if now < nextRequest { return }
    nextRequest = now.adding(seconds: 1)
    tell(.extendTimeout(.seconds(30)))
    attend(now: now)
  }

  /// Sends the notifications that wait for room, and a keep-alive message, if they are due.
  mutating func attend(now: Instant) {
    assert((interval == nil) == (nextSign == nil), "the watchdog has an interval and a next moment, or neither")
    if !waiting.isEmpty, nextTry <= now {
      nextTry = now.adding(nanoseconds: pause)
      pause = min(2 * pause, Self.longestPause)
      sendWaiting()
    }
    guard let interval, let moment = nextSign, moment <= now else { return }
    // After a whole interval, the next one would come when the time of the watchdog is up.
    nextSign = now.adding(nanoseconds: send([.watchdog]) ? interval : min(interval / 4, Self.longestPause))
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
