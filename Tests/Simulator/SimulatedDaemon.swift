import FeedModel
import FeedServer

import FeedEngine
@testable import ReferenceModel

/// The shipped turn and engine over a faulty network, a log that is disturbed and a manual clock. It can crash and start again.
///
/// A turn runs only when the daemon's event loop would run one: when the link or the log has an event, or when the turn said
/// that it is due. So work that the turn forgets stays undone, as it would for a user.
final class SimulatedDaemon {
  /// How a process ends.
  enum End {
    /// It is killed. So many batches in flight reach a log in memory all the same.
    case kill(tail: Int)
    /// The machine loses power; the seed decides what is lost.
    case powerLoss(UInt64)
  }

  private(set) var now = Instant(nanoseconds: 1_000_000_000)
  let limits: Limits
  /// Nil with a log in memory.
  let disk: StoredLog.Disk?
  /// The name of the history of revisions.
  private(set) var epoch = "simulation"
  private(set) var engine: Engine
  private(set) var log: any SimulatedLog
  private var turn: Turn
  var link = FaultyLink()
  /// Starts since the beginning.
  private(set) var starts = 1
  private(set) var turns = 0
  /// Whether each request that changes feeds is executed in slices, with turns between them.
  private let isSliced: Bool

  /// The user that the daemon runs as.
  static let owner: UInt32 = 990

  init(limits: Limits, window: Int, disk: StoredLog.Disk?, isSliced: Bool = false) throws {
    self.limits = limits
    self.isSliced = isSliced
    self.disk = disk
    log = MemoryLog(window: window)
    engine = Self.makeEngine(limits, epoch: epoch, seed: 1, now: now)
    turn = Turn(
      engine, log: log, slices: Self.slices(isSliced), queries: Self.slices(isSliced), deltas: Self.slices(isSliced),
      now: now)
    if let disk { try start(disk) }
  }

  private static func slices(_ isSliced: Bool) -> (any SliceRunner)? {
    isSliced ? SlicedWork("slices", slice: 0, isEager: true) : nil
  }

  private static func makeEngine(_ limits: Limits, epoch: String, seed: UInt64, now: Instant) -> Engine {
    let identity = ServerIdentity(version: "0", epoch: epoch, pid: 1, uid: owner, durability: "process")
    return Engine(limits: limits, identity: identity, seed: seed, isDurable: true, now: now)
  }

  /// Lets time pass, and a millisecond more: no element is then exactly as old as its limit. The reference counts whole
  /// milliseconds, but in the daemon the steps of a commit are a nanosecond apart.
  func advance(seconds: Double) {
    let milliseconds = UInt64((seconds * 1000).rounded()) + 1
    now = Instant(nanoseconds: now.nanoseconds + milliseconds * 1_000_000)
  }

  /// Whether the daemon would wake up.
  var isDue: Bool {
    if link.hasEvents || log.hasEvents { return true }
    switch turn.next(after: now) {
    case .now: return true
    case .at(let moment): return moment <= now
    case .whenReadable: return false
    }
  }

  var lossReason: String? { turn.lossReason }
  var isDrained: Bool { turn.isDrained }

  /// One turn, and what it may do in one. If requests are sliced, also the turns until all that is stored was executed.
  func runTurn() throws(SimulationFailure) {
    for _ in 0..<100_000 {
      try runSlice()
      if !isSliced || !turn.isExecuting { return }
    }
    throw SimulationFailure("the daemon executes a batch and gets nowhere")
  }

  private func runSlice() throws(SimulationFailure) {
    turns += 1
    let commits = engine.commitCount
    turn.run(&link, now: now)
    engine.checkInvariants()
    if turn.isWithinBatch { return try checkBudget(commits: engine.commitCount &- commits) }
    (log as? StoredLog)?.workOnImage(
      executed: turn.executed, steps: engine.catalog.stepsTaken, isBusy: turn.hadInput
    ) { engine.catalog.makeImage() }
    try checkBudget(commits: engine.commitCount &- commits)
  }

  func drain() { turn.drain(reason: "shutdown", message: "The daemon is stopping.") }

  // MARK: Starts

  /// Ends the process and starts it again on what the log kept.
  func restart(_ end: End) throws {
    weak let former = engine
    try begin(after: end)
    // Its clients may have been in the middle of anything.
    if former != nil { throw SimulationFailure("the engine of the former process is not deallocated") }
  }

  private func begin(after end: End) throws {
    starts += 1
    link = FaultyLink()
    if let disk {
      // Closes the files.
      replace(engine, MemoryLog(window: 1))
      if case .powerLoss(let seed) = end { try disk.losePower(seed) }
      try start(disk)
    } else if let log = log as? MemoryLog {
      var tail = 0
      if case .kill(let count) = end { tail = count }
      let survivors = log.survivors(tail: tail)
      replace(
        Self.makeEngine(limits, epoch: epoch, seed: UInt64(starts), now: now),
        MemoryLog(window: log.window, kept: survivors))
      for batch in survivors { try batch.withLogBatch { try engine.replay($0) } }
    }
    engine.checkInvariants()
  }

  private func start(_ disk: StoredLog.Disk) throws {
    let log = try StoredLog(disk)
    epoch = log.epoch
    let engine = Self.makeEngine(limits, epoch: epoch, seed: UInt64(starts), now: now)
    let newest = try log.recover(into: engine, limits)
    // Whole milliseconds: the reference counts in them.
    now = max(now, Instant(nanoseconds: UInt64(newest.milliseconds + 1) * 1_000_000))
    replace(engine, log)
  }

  private func replace(_ engine: Engine, _ log: any SimulatedLog) {
    self.engine = engine
    self.log = log
    turn = Turn(
      engine, log: log, slices: Self.slices(isSliced), queries: Self.slices(isSliced), deltas: Self.slices(isSliced),
      now: now)
  }

  // MARK: Auditing

  /// A turn takes a bounded amount of input, and lets no connection's queue grow beyond what its limits allow.
  private func checkBudget(commits: UInt64) throws(SimulationFailure) {
    var total = 0
    for (line, work) in link.takeWork().enumerated() {
      total += work.bytesRead
      if work.bytesRead > 2 * Intake.bytesPerTurn {
        throw SimulationFailure("a turn read \(work.bytesRead) bytes of line \(line)")
      }
    }
    if total > Intake.turnCapacity + Intake.bytesPerTurn { throw SimulationFailure("a turn read \(total) bytes") }
    // Each request in a batch has 40 bytes or more.
    if commits > UInt64(max(log.longest, 1 << 20)) / 40 * UInt64(log.window) {
      throw SimulationFailure("a turn made \(commits) commits")
    }
    // What is above the limit came in one turn: the answers to a line of requests, or the frames of one commit.
    let queued = engine.longestQueue
    if queued > limits.maxQueue + Self.burst {
      throw SimulationFailure("\(queued) bytes are queued for one connection")
    }
  }

  /// Bytes that one turn may queue for one connection beyond `maxQueue`, in these histories.
  private static let burst = 1 << 20

  /// What the engine holds of a feed.
  func content(of name: String) -> [Mirror.Section]? {
    guard let feed = try? engine.catalog.feed(named: name) else { return nil }
    return (0..<feed.sectionCount).map { index in
      let section = feed.section(at: index)
      let rows = (0..<section.count).map { place in
        let row = section.row(at: place)
        let type = row.type.isEmpty ? "null" : String(decoding: row.type, as: UTF8.self)
        return Mirror.Row(element: String(decoding: row.text, as: UTF8.self), type: type)
      }
      return Mirror.Section(name: section.name, rows: rows)
    }
  }

  /// The selected rows of every feed that has some.
  func selections() -> [String: [[Int]]] {
    var selections: [String: [[Int]]] = [:]
    for (name, feed) in engine.catalog.feeds {
      let paths = feed.selection.map { [Int($0.section), Int($0.row)] }
      if !paths.isEmpty { selections[name] = paths }
    }
    return selections
  }

  /// The daemon holds what the oracle says, at the same revision.
  func compare(with oracle: Oracle) throws(SimulationFailure) {
    guard Int(engine.catalog.revision) == oracle.revision else {
      throw SimulationFailure("the daemon is at revision \(engine.catalog.revision), not \(oracle.revision)")
    }
    guard engine.catalog.feeds.count == oracle.reference.feeds.count else {
      throw SimulationFailure("the daemon has \(engine.catalog.feeds.count) feeds, not \(oracle.reference.feeds.count)")
    }
    for name in oracle.names where content(of: name) != oracle.content(of: name) {
      throw SimulationFailure("\(name) is \(content(of: name) ?? []), not \(oracle.content(of: name) ?? [])")
    }
    try compareRevisions(with: oracle)
  }

  /// Each feed and bin has the revision of the last commit that changed what it shows.
  func compareRevisions(with oracle: Oracle) throws(SimulationFailure) {
    for name in oracle.names {
      let revision = (try? engine.catalog.feed(named: name)).map { Int($0.revision) }
      if revision == oracle.revision(of: name) { continue }
      throw SimulationFailure("\(name) is at revision \(revision ?? -1), not \(oracle.revision(of: name) ?? -1)")
    }
  }

  /// Nothing is left of connections when all are gone.
  func checkIsEmpty() throws(SimulationFailure) {
    for (name, count) in engine.connectionGauges where count != 0 {
      throw SimulationFailure("\(name) is \(count) without connections")
    }
  }
}
