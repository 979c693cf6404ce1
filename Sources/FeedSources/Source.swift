import FeedJSON
import FeedModel
import FeedSystem
import Synchronization

/// The database of one managed feed: when to read it next, and the thread that reads it.
///
/// Used by the loop's thread only. A *look* checks the database for new commits, and reads it if there are any.
/// Invariant: `nextLook` is nil exactly while a look is running.
final class Source {
  /// Nanoseconds between an event and the look: a debounce, because a program often writes several times in a row.
  private static let quiet: UInt64 = 20_000_000
  /// Nanoseconds between looks without events: not every change has an event, such as a mount.
  private static let routine: UInt64 = 10_000_000_000
  /// Nanoseconds between looks while events of the files may be missing.
  private static let polling: UInt64 = 2_000_000_000
  /// Nanoseconds before the first retry after a failure. Doubles with each failure, up to `routine`.
  private static let firstRetry: UInt64 = 500_000_000
  /// The least time before a retry, in durations of the look that failed: a query that takes too long uses a part of one
  /// processor.
  private static let pausesAfterFailure: UInt64 = 4

  private(set) var specification: SourceSpecification
  /// The number of the present specification, or of its last new start. Only reports with it count.
  private var generation: Int
  /// The generation of the running look; nil if none is running.
  private var running: Int?
  private let mailbox: SourceMailbox
  /// The thread; nil before the first look, and if the system has no resources for it.
  private var reader: SourceReader?
  /// Whether the files changed during the running look.
  private var isDirty = false
  /// Whether the next look reads the database also without commits.
  private var readsAgain = false
  private var failures: UInt64 = 0
  private var lastDuration: UInt64 = 0
  /// When to look next; nil while a look is running.
  private(set) var nextLook: UInt64?
  /// Why changes of the files may have no events; nil if all have.
  private(set) var blindness: String?

  init(_ specification: SourceSpecification, _ mailbox: SourceMailbox, now: UInt64) {
    (self.specification, self.mailbox) = (specification, mailbox)
    generation = mailbox.makeGeneration()
    nextLook = now
  }

  deinit { reader?.end() }

  /// Replaces the specification. No effect if it is the same.
  func change(to specification: SourceSpecification, now: UInt64) {
    if specification == self.specification { return }
    self.specification = specification
    startOver(now: now)
  }

  /// Looks at once, as if for the first time. A running look is cancelled, and its report is discarded.
  func startOver(now: UInt64) {
    generation = mailbox.makeGeneration()
    (failures, lastDuration, readsAgain) = (0, 0, true)
    if running != nil { reader?.cancel() } else { nextLook = now }
  }

  /// Schedules a look because the files changed.
  func touch(now: UInt64) {
    if running != nil {
      isDirty = true
    } else {
      // The delay is at least the duration of the last look, so a slow query takes at most half of the time.
      nextLook = min(nextLook ?? .max, now + max(Self.quiet, lastDuration))
    }
  }

  /// Schedules a look that reads the database also without commits.
  func readAgain(now: UInt64) {
    readsAgain = true
    touch(now: now)
  }

  /// - Parameter blindness: why changes of the files may have no events; nil if all have.
  func look(blindness: String?) {
    assert(running == nil, "one look at a time")
    running = generation
    isDirty = false
    nextLook = nil
    self.blindness = blindness
    do throws(SystemError) {
      if reader == nil { reader = try SourceReader(mailbox) }
      reader?.look(specification, generation: generation, again: readsAgain)
      readsAgain = false
    } catch {
      mailbox.post(
        SourceReport(name: specification.name, generation: generation, outcome: .failed("\(error)"), duration: 0))
    }
  }

  /// Ends a look. Returns whether the report is about the current specification.
  func finishLook(with report: SourceReport, now: UInt64) -> Bool {
    // A former feed of this name may have left a report.
    guard let running, report.generation == running else { return false }
    self.running = nil
    guard running == generation else {
      nextLook = now
      return false
    }
    lastDuration = report.duration
    if case .failed = report.outcome {
      let delay = min(Self.firstRetry << min(failures, 10), Self.routine)
      nextLook = now + max(delay, Self.pausesAfterFailure * report.duration)
      failures += 1
    } else {
      nextLook = now + max(blindness == nil ? Self.routine : Self.polling, report.duration)
      failures = 0
    }
    if isDirty { touch(now: now) }
    return true
  }
}

/// A thread that reads one database on request, so that a slow query delays no other feed.
private final class SourceReader: Sendable {
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
        let outcome = connection.look(specification, again: again) { self.isCancelled.load(ordering: .relaxed) }
        mailbox.post(
          SourceReport(
            name: specification.name, generation: generation, outcome: outcome, duration: MonotonicClock.now - start))
      }
    }
  }
}

public struct SourceReport: Sendable {
  public enum Outcome: Sendable {
    /// There were no commits since the last read.
    case unchanged
    /// All rows of the query.
    case rows(ManagedRows)
    /// The reason and the next step, as one text.
    case failed(String)
  }

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

  init() throws(SystemError) { wakeUp = try WakeUp() }

  /// Readable while there are reports.
  var descriptor: Int32 { wakeUp.descriptor }

  /// Returns a number for the reports about one specification of one database.
  func makeGeneration() -> Int { generations.add(1, ordering: .relaxed).newValue }

  func post(_ report: SourceReport) {
    reports.withLock { $0.append(report) }
    wakeUp.signal()
  }

  func take() -> [SourceReport] {
    wakeUp.clear()
    return reports.withLock { reports in
      defer { reports = [] }
      return reports
    }
  }
}
