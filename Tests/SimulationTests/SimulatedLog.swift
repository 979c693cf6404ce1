import FeedModel

/// A log in memory that stores late, reports late, fails, and survives a crash with or without its last batches.
final class SimulatedLog: CommitLog {
  /// A batch with its own copy of the requests.
  struct Batch {
    let number: UInt64
    let at: Instant
    let revision: UInt64?
    let bytes: [UInt8]

    /// Gives the batch to `body` as a log gives it to replay.
    func withLogBatch<Result>(_ body: (LogBatch) throws -> Result) rethrows -> Result {
      try bytes.withUnsafeBytes { try body(LogBatch(number: number, at: at, revision: revision, frames: $0)) }
    }
  }

  /// What happens to a batch at once.
  enum Mode {
    case stores, holds
    case fails(String)
  }

  private struct Report {
    let event: LogEvent
    var batches: [Batch] = []
    var failure: String?
  }

  let window: Int
  let storesAtOnce = false
  let descriptor: Int32? = nil
  var mode = Mode.stores
  /// Whether events wait for ``report()``.
  var reportsLate = false
  /// The batches that a restart finds for certain, those of earlier runs included.
  private(set) var kept: [Batch]
  /// The batches that are neither stored nor failed.
  private(set) var inFlight: [Batch] = []
  /// The batches whose events the turn has taken since the last ``takeOutcomes()``, with the reason if they failed.
  private var outcomes: [(batch: Batch, failure: String?)] = []
  private var unreported: [Report] = []
  private var events: [Report] = []
  /// The batches that the turn was told were not stored.
  private var failed: [Batch] = []
  private var lastNumber: UInt64 = 0
  /// The length of the longest batch of several requests.
  private(set) var longest = 0

  init(window: Int, kept: [Batch]) {
    self.window = window
    self.kept = kept
  }

  var hasEvents: Bool { !events.isEmpty }
  var isIdle: Bool { inFlight.isEmpty && unreported.isEmpty && events.isEmpty }

  func append(_ batch: LogBatch) {
    let waiting = (events + unreported).reduce(0) { $0 + $1.batches.count }
    precondition(inFlight.count + waiting < window, "the window is exceeded")
    precondition(batch.number == lastNumber + 1, "the numbers of batches have a gap")
    lastNumber = batch.number
    longest = max(longest, batch.frames.count)
    inFlight.append(
      Batch(number: batch.number, at: batch.at, revision: batch.revision, bytes: Array(batch.frames)))
    switch mode {
    case .stores: store(inFlight.count)
    case .holds: break
    case .fails(let reason): fail(reason)
    }
  }

  /// Stores the oldest batches in flight.
  func store(_ count: Int) {
    let batches = Array(inFlight.prefix(count))
    guard let last = batches.last else { return }
    inFlight.removeFirst(batches.count)
    kept += batches
    add(.stored(through: last.number), batches, failure: nil)
  }

  /// Fails all batches in flight.
  func fail(_ reason: String) {
    guard let first = inFlight.first else { return }
    let batches = inFlight
    inFlight = []
    add(.failed(from: first.number, reason: reason), batches, failure: reason)
  }

  /// The log cannot tell what is stored from now on.
  func lose(_ reason: String) { events.append(Report(event: .lost(reason: reason))) }

  private func add(_ event: LogEvent, _ batches: [Batch], failure: String?) {
    let report = Report(event: event, batches: batches, failure: failure)
    if reportsLate { unreported.append(report) } else { events.append(report) }
  }

  /// Lets the turn have the events that waited.
  func report() {
    events += unreported
    unreported = []
  }

  func nextEvent() -> LogEvent? {
    if events.isEmpty { return nil }
    let report = events.removeFirst()
    if report.failure != nil { failed += report.batches }
    outcomes += report.batches.map { ($0, report.failure) }
    return report.event
  }

  /// What the turn was told since the last call, in order.
  func takeOutcomes() -> [(batch: Batch, failure: String?)] {
    defer { outcomes = [] }
    return outcomes
  }

  /// The batches that a restart finds after a crash: all that are stored, and `tail` of those in flight.
  func survivors(tail: Int) -> [Batch] { kept + inFlight.prefix(tail) }

  /// The batches of `survivors(tail:)` that the turn was not told of.
  func unexecuted(tail: Int) -> [Batch] {
    (events + unreported).filter { $0.failure == nil }.flatMap(\.batches) + inFlight.prefix(tail)
  }

  /// Sabotage: a batch that was reported as stored is lost.
  func forget() { _ = kept.popLast() }

  /// Sabotage: the batches that were reported as failed are found after a crash.
  func keepFailed() {
    kept += failed
    failed = []
  }

  func release(through number: UInt64) {}
  func close(within nanoseconds: UInt64) {}
}
