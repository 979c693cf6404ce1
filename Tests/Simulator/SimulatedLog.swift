import FeedModel

@testable import ReferenceModel

/// A log that a simulation disturbs.
protocol SimulatedLog: CommitLog {
  /// Whether the event loop would run a turn for an event of the log.
  var hasEvents: Bool { get }
  /// Whether everything that was appended is stored or failed, and reported.
  var isIdle: Bool { get }
  /// The length of the longest batch.
  var longest: Int { get }

  /// The batches whose events the turn has taken since the last call, in order, with the reason if they failed.
  func takeOutcomes() -> [(batch: StoredRequests, failure: String?)]

  /// Does what threads of the log do between two turns.
  func work()

  /// Begins or ends a disturbance. Returns what it is.
  func disturb(_ generator: inout TreeGenerator) -> String

  /// Ends all disturbances; everything that waits is stored and reported.
  func calm()
}

/// A batch with its own copy of the requests.
struct StoredRequests {
  let number: UInt64
  let at: Instant
  let revision: UInt64?
  let bytes: [UInt8]

  init(_ batch: LogBatch) {
    (number, at, revision) = (batch.number, batch.at, batch.revision)
    bytes = Array(batch.frames)
  }

  /// Gives the batch to `body` as a log gives it to replay.
  func withLogBatch<Result>(_ body: (LogBatch) throws -> Result) rethrows -> Result {
    try bytes.withUnsafeBytes { try body(LogBatch(number: number, at: at, revision: revision, frames: $0)) }
  }
}

/// A log in memory that stores late, reports late, fails, and survives a crash with or without its last batches.
final class MemoryLog: SimulatedLog {
  /// What happens to a batch at once.
  private enum Mode {
    case stores, holds
    case fails(String)
  }

  private struct Report {
    let event: LogEvent
    var batches: [StoredRequests] = []
    var failure: String?
  }

  let window: Int
  let storesNothing = false
  let shortage: String? = nil
  let descriptor: Int32? = nil
  private var mode = Mode.stores
  /// Whether events wait for `report()`.
  private var reportsLate = false
  /// The batches that a restart finds for certain, those of earlier runs included.
  private var kept: [StoredRequests]
  /// The batches that are neither stored nor failed.
  private(set) var inFlight: [StoredRequests] = []
  private var outcomes: [(batch: StoredRequests, failure: String?)] = []
  private var unreported: [Report] = []
  private var events: [Report] = []
  /// The batches that the turn was told were not stored.
  private var failed: [StoredRequests] = []
  private var lastNumber: UInt64 = 0
  private(set) var longest = 0

  init(window: Int, kept: [StoredRequests] = []) {
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
    inFlight.append(StoredRequests(batch))
    switch mode {
    case .stores: store(inFlight.count)
    case .holds: break
    case .fails(let reason): fail(reason)
    }
  }

  func work() {}

  func disturb(_ generator: inout TreeGenerator) -> String {
    switch generator.below(8) {
    case 0, 1:
      mode = .holds
      return "the log stores late"
    case 2:
      mode = .fails("no space left on device")
      if generator.chance(50) { fail("input/output error") }
      return "the log fails"
    case 3:
      reportsLate = true
      return "the log reports late"
    case 4:
      store(1)
      return "the log stores one batch"
    case 5:
      reportsLate = false
      report()
      return "the log reports"
    default:
      calm()
      return "the log works"
    }
  }

  func calm() {
    mode = .stores
    store(inFlight.count)
    reportsLate = false
    report()
  }

  /// Stores the oldest batches in flight, also behind a failed batch of which the turn has not been told.
  private func store(_ count: Int) {
    let batches = Array(inFlight.prefix(count))
    guard let last = batches.last else { return }
    inFlight.removeFirst(batches.count)
    kept += batches
    add(.stored(through: last.number), batches, failure: nil)
  }

  /// Fails all batches in flight.
  private func fail(_ reason: String) {
    guard let first = inFlight.first, let last = inFlight.last else { return }
    let batches = inFlight
    inFlight = []
    add(.failed(from: first.number, through: last.number, reason: reason), batches, failure: reason)
  }

  /// The log cannot tell what is stored from now on.
  func lose(_ reason: String) { events.append(Report(event: .lost(reason: reason))) }

  private func add(_ event: LogEvent, _ batches: [StoredRequests], failure: String?) {
    let report = Report(event: event, batches: batches, failure: failure)
    if reportsLate { unreported.append(report) } else { events.append(report) }
  }

  /// Lets the turn have the events that waited.
  private func report() {
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

  func takeOutcomes() -> [(batch: StoredRequests, failure: String?)] {
    defer { outcomes = [] }
    return outcomes
  }

  /// The batches that a restart finds after a crash: all that are stored, and `tail` of those in flight.
  func survivors(tail: Int) -> [StoredRequests] { kept + inFlight.prefix(tail) }

  /// The batches of `survivors(tail:)` that the turn was not told of.
  func unexecuted(tail: Int) -> [StoredRequests] {
    (events + unreported).filter { $0.failure == nil }.flatMap(\.batches) + inFlight.prefix(tail)
  }

  /// Sabotage: a batch that was reported as stored is lost.
  func forget() { _ = kept.popLast() }

  /// Sabotage: the batches that were reported as failed are found after a crash.
  func keepFailed() {
    kept += failed
    failed = []
  }

  func close(within nanoseconds: UInt64) {}
}
