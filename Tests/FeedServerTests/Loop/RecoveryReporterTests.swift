import FeedStorage
import FeedSystem
import Synchronization
import TestSupport
import Testing

@testable import FeedServer

@Suite("Reports of a recovery")
struct RecoveryReporterTests {
  /// Collects reports; the test waits for them.
  private final class Inbox: Sendable {
    private let reports = Mutex<[RecoveryReport]>([])
    private let wakeUp: WakeUp

    init() throws { wakeUp = try WakeUp() }

    func add(_ report: RecoveryReport) {
      reports.withLock { $0.append(report) }
      wakeUp.signal()
    }

    /// Waits for a report of the batch that ends in a row.
    func first(row: Int64) -> RecoveryReport {
      while true {
        if let found = reports.withLock({ $0.first { $0.progress.row == row } }) { return found }
        wakeUp.wait()
      }
    }

    var warnings: [Int64] { reports.withLock { $0.filter(\.isNewWarning).map(\.progress.row) } }
  }

  @Test("a batch is reported while it executes, with one warning if it takes long")
  func longBatch() throws {
    let inbox = try Inbox()
    let reporter = try RecoveryReporter(every: .milliseconds(1), longBatch: .zero) { inbox.add($0) }
    var progress = RecoveryProgress()
    progress.elements = 5
    for row in [Int64(7), 9] {
      progress.row = row
      reporter.note(progress)
      let report = inbox.first(row: row)
      expectEqual(report.progress, progress)
      expect(report.text.hasPrefix("recovering: 5 elements, 0 batches of the log"))
      expect(report.warning.contains("--skip-batch \(row),"))
    }
    reporter.stop()
    expectEqual(inbox.warnings, [7, 9])
  }

  @Test("reading an image causes no warning")
  func imageOnly() throws {
    let inbox = try Inbox()
    let reporter = try RecoveryReporter(every: .milliseconds(1), longBatch: .zero) { inbox.add($0) }
    _ = inbox.first(row: 0)
    reporter.stop()
    expect(inbox.warnings.isEmpty)
  }
}
