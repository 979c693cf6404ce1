import FeedJSON
import FeedModel
import FeedSystem
import Synchronization

/// A thread that reads one database on request, so that a slow query delays no other feed.
final class SourceReader: Sendable {
  private enum Task: Sendable {
    case none
    case look(SourceSpecification, generation: Int, again: Bool)
    case end
  }

  private let task = Guarded<Task>(.none)
  private let isCancelled = Atomic(false)
  private let wakeUp: WakeUp
  private let mailbox: SourceMailbox

  init(_ mailbox: SourceMailbox) throws(SystemError) {
    wakeUp = try WakeUp()
    self.mailbox = mailbox
    try Thread("source") { self.run() }
  }

  /// Requests a look. The report is posted to the mailbox. Replaces a request that has not started.
  ///
  /// - Parameter again: whether the database is read also without commits since the last look.
  func look(_ specification: SourceSpecification, generation: Int, again: Bool) {
    isCancelled.store(false, ordering: .relaxed)
    task.withLock { $0 = .look(specification, generation: generation, again: again) }
    wakeUp.signal()
  }

  /// Interrupts the query of the running look, which then fails.
  func cancel() { isCancelled.store(true, ordering: .relaxed) }

  /// Cancels the running look and ends the thread.
  func end() {
    cancel()
    task.withLock { $0 = .end }
    wakeUp.signal()
  }

  private func run() {
    var connection = SourceConnection()
    while true {
      wakeUp.wait()
      let next = task.withLock { task in
        defer { task = .none }
        return task
      }
      switch next {
      case .none: continue
      case .end: return
      case .look(let specification, let generation, let again):
        let start = MonotonicClock.now
        let outcome = connection.look(specification, again: again) {
          self.isCancelled.load(ordering: .relaxed)
        }
        mailbox.post(
          SourceReport(
            name: specification.name, generation: generation, outcome: outcome, duration: MonotonicClock.now - start))
      }
    }
  }
}

/// The result of a look.
public struct SourceReport: Sendable {
  public enum Outcome: Sendable {
    /// There were no commits since the last read.
    case unchanged
    /// All rows of the query.
    case rows(ManagedRows)
    /// The reason and the next step, as one text.
    case failed(String)
  }

  /// The feed's name.
  public let name: String
  /// The generation of the specification that was used. Reports of earlier generations are discarded.
  let generation: Int
  public let outcome: Outcome
  /// Nanoseconds that the look took.
  let duration: UInt64
  /// Why changes of the files may go unnoticed until the next look; nil if all are noticed.
  public internal(set) var blindness: String?
}

/// The reports that readers post for the loop's thread.
final class SourceMailbox: Sendable {
  private let reports = Guarded<[SourceReport]>([])
  private let generations = Atomic(0)
  private let wakeUp: WakeUp

  init() throws(SystemError) {
    wakeUp = try WakeUp()
  }

  /// Readable while there are reports.
  var descriptor: Int32 { wakeUp.descriptor }

  /// Returns a number for the reports about one specification of one database.
  func makeGeneration() -> Int { generations.add(1, ordering: .relaxed).newValue }

  func post(_ report: SourceReport) {
    reports.withLock { $0.append(report) }
    wakeUp.signal()
  }

  /// Removes and returns all reports, in order.
  func take() -> [SourceReport] {
    wakeUp.clear()
    return reports.withLock { reports in
      defer { reports = [] }
      return reports
    }
  }
}
