import FeedSystem

/// The database of one managed feed: when to read it next, and which file events cause a read.
///
/// Used by the loop's thread only. A *look* checks the database for new commits, and reads it if there are any.
/// Invariant: `nextLook` is nil exactly while a look is running.
final class Source {
  /// Nanoseconds between an event and the look: a debounce, because a program often writes several times in a row.
  private static let quiet: UInt64 = 20_000_000
  /// Nanoseconds between looks without events, for file systems that report none.
  private static let routine: UInt64 = 60_000_000_000
  /// Nanoseconds before the first retry after a failure. Doubles with each failure, up to `routine`.
  private static let firstRetry: UInt64 = 500_000_000

  private(set) var specification: SourceSpecification
  private(set) var generation = 0
  private let reader: SourceReader
  private var isLooking = false
  /// Whether the files changed during the running look.
  private var isDirty = false
  /// Whether the next look reads the database also without commits.
  private var readsAgain = false
  private var failures: UInt64 = 0
  private var lastDuration: UInt64 = 0
  /// When to look next; nil while a look is running.
  private(set) var nextLook: UInt64?
  /// The names of the files whose events matter, by the watch descriptor of their directory.
  var names: [Int32: Set<String>] = [:]

  init(_ specification: SourceSpecification, _ mailbox: SourceMailbox, now: UInt64) throws(SystemError) {
    self.specification = specification
    reader = try SourceReader(mailbox)
    nextLook = now
  }

  /// Replaces the specification. No effect if it is the same.
  func change(to specification: SourceSpecification, now: UInt64) {
    if specification == self.specification { return }
    self.specification = specification
    generation += 1
    touch(now: now)
  }

  /// Schedules a look because the files changed.
  func touch(now: UInt64) {
    if isLooking {
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

  /// Starts a look.
  func look() {
    assert(!isLooking, "one look at a time")
    isLooking = true
    isDirty = false
    nextLook = nil
    reader.look(specification, generation: generation, again: readsAgain)
    readsAgain = false
  }

  /// Ends a look. Returns whether the report is about the current specification.
  func finishLook(with report: SourceReport, now: UInt64) -> Bool {
    assert(isLooking && nextLook == nil, "a report without a look")
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

  /// Ends the reader's thread.
  func end() { reader.end() }
}
