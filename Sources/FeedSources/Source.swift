import FeedSystem

/// One managed feed's database as the loop sees it: when it is looked at next, and which files tell that it should be.
///
/// Guarded by the loop's thread.
final class Source {
  /// What is waited before a look after an event: a program writes several times in a row.
  private static let quiet: UInt64 = 20_000_000
  /// A look without an event, for file systems that report none.
  private static let routine: UInt64 = 60_000_000_000
  /// The first wait after a failure; each further one is twice as long, up to `routine`.
  private static let firstRetry: UInt64 = 500_000_000

  private(set) var specification: SourceSpecification
  private(set) var generation = 0
  private let reader: SourceReader
  private var isLooking = false
  /// Something happened during the look under way.
  private var isDirty = false
  private var failures: UInt64 = 0
  private var lastDuration: UInt64 = 0
  /// When the database is looked at next; nil while it is being looked at.
  private(set) var nextLook: UInt64?
  /// Names to attend to, by the number of the directory they stand in.
  var names: [Int32: Set<String>] = [:]

  init(_ specification: SourceSpecification, _ mailbox: SourceMailbox, now: UInt64) throws(SystemError) {
    self.specification = specification
    reader = try SourceReader(mailbox)
    nextLook = now
  }

  /// Reads something else from now on.
  func change(to specification: SourceSpecification, now: UInt64) {
    if specification == self.specification { return }
    self.specification = specification
    generation += 1
    touch(now: now)
  }

  /// Something happened to the files.
  func touch(now: UInt64) {
    if isLooking {
      isDirty = true
    } else {
      // A large query that is wanted again and again takes half of the time at most.
      nextLook = min(nextLook ?? .max, now + max(Self.quiet, lastDuration))
    }
  }

  /// Starts a look.
  func look() {
    isLooking = true
    isDirty = false
    nextLook = nil
    reader.look(specification, generation: generation)
  }

  /// A look is over. Returns whether its outcome counts.
  func take(_ report: SourceReport, now: UInt64) -> Bool {
    isLooking = false
    lastDuration = report.duration
    if case .failed = report.outcome {
      nextLook = now + min(Self.firstRetry << min(failures, 10), Self.routine)
      failures += 1
    } else {
      nextLook = now + Self.routine
      failures = 0
    }
    if isDirty { touch(now: now) }
    return report.generation == generation
  }

  func end() { reader.end() }
}
