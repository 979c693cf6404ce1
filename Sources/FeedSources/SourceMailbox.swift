import FeedSystem
import Synchronization

/// Where readers leave their reports for the loop.
final class SourceMailbox: Sendable {
  private let reports = Mutex<[SourceReport]>([])
  private let wakeUp: WakeUp

  init() throws(SystemError) {
    wakeUp = try WakeUp()
  }

  /// Readable while there are reports.
  var descriptor: Int32 { wakeUp.descriptor }

  func post(_ report: SourceReport) {
    reports.withLock { $0.append(report) }
    wakeUp.signal()
  }

  /// The reports that came, in order.
  func take() -> [SourceReport] {
    wakeUp.clear()
    return reports.withLock { reports in
      defer { reports = [] }
      return reports
    }
  }
}
