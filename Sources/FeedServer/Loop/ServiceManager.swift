import FeedModel
import FeedSystem

/// The connection to the service manager: state notifications and the watchdog's keep-alive messages.
///
/// Without a service manager all calls do nothing. A message that cannot be sent is logged and otherwise ignored.
struct ServiceManager {
  private let notify: Notify
  private let log: Log
  /// Nanoseconds between two keep-alive messages, half of the watchdog's timeout; nil without a watchdog.
  private let interval: UInt64?
  private var nextWatchdog: Instant?

  init(_ notify: Notify, _ log: Log, now: Instant) {
    self.notify = notify
    self.log = log
    interval = notify.watchdogInterval.map { $0.clampedNanoseconds / 2 }
    nextWatchdog = interval == nil ? nil : now
  }

  /// Sends the messages as one notification.
  func tell(_ messages: Notify.Message...) {
    do throws(SystemError) {
      try notify.send(messages)
    } catch {
      log.write(.warning, "\(error)")
    }
  }

  /// The time of the next keep-alive message; nil without a watchdog.
  var deadline: Instant? { nextWatchdog }

  /// Sends a keep-alive message if one is due.
  mutating func attend(now: Instant) {
    assert((interval == nil) == (nextWatchdog == nil), "the watchdog has an interval and a next moment, or neither")
    guard let interval, let moment = nextWatchdog, moment <= now else { return }
    nextWatchdog = now.adding(nanoseconds: interval)
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
  }

  private(set) var failedBatches = 0

  /// Records that a batch was not stored.
  /// - Returns: the report of the first failure; nil for the following ones.
  mutating func didFail(_ reason: String) -> Report? {
    failedBatches += 1
    guard failedBatches == 1 else { return nil }
    return Report(line: "\(reason); changes are refused until storing works again", status: "cannot store: \(reason)")
  }

  /// Records that a batch was stored. O(1), without allocation if there was no failure.
  /// - Returns: the report of the recovery; nil if there was no failure.
  mutating func didStore() -> Report? {
    if failedBatches == 0 { return nil }
    defer { failedBatches = 0 }
    return Report(
      line: "storing works again; \(failedBatches) \(failedBatches == 1 ? "batch was" : "batches were") refused",
      status: "listening; storing works again")
  }
}
