import FeedSystem
import Synchronization

/// Where readers leave their reports for the loop.
final class SourceMailbox: Sendable {
  private let reports = Mutex<[SourceReport]>([])
  private let wakeup: Wakeup

  init() throws(SystemError) {
    wakeup = try Wakeup()
  }

  /// Readable while there are reports.
  var descriptor: Int32 { wakeup.descriptor }

  func post(_ report: SourceReport) {
    reports.withLock { $0.append(report) }
    wakeup.signal()
  }

  /// The reports that came, in order.
  func take() -> [SourceReport] {
    wakeup.take()
    return reports.withLock { reports in
      defer { reports = [] }
      return reports
    }
  }
}
