import FeedModel
import FeedServer

import FeedEngine
@testable import ReferenceModel

/// The shipped turn and engine, or the shipped event loop around them, over a faulty network, a log that is disturbed and a
/// manual clock. It can crash and start again.
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
  private var process: any SimulatedProcess
  /// Starts since the beginning.
  private(set) var starts = 1
  private(set) var turns = 0
  /// Whether each request that changes feeds is executed in slices, with turns between them.
  private let isSliced: Bool
  /// Whether the shipped event loop runs, on sockets.
  private let usesLoop: Bool

  /// The user that the daemon runs as.
  static let owner: UInt32 = 990

  init(
    limits: Limits, window: Int, disk: StoredLog.Disk?, isSliced: Bool = false, usesLoop: Bool = false
  ) throws {
    self.limits = limits
    self.isSliced = isSliced
    self.usesLoop = usesLoop
    self.disk = disk
    log = MemoryLog(window: window)
    engine = Self.makeEngine(limits, epoch: epoch, seed: 1, now: now)
    process = TurnProcess(engine, log, now: now) { _ in nil }
    if let disk { try start(disk) } else { try replace(engine, log) }
  }

  deinit {
    if usesLoop { SocketNetwork.switchOff() }
  }

  var link: any SimulatedNetwork { process.network }

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
    log.hasEvents || process.isDue(at: now) || (log as? StoredLog)?.imagePause == 0
  }

  var lossReason: String? { process.status.lossReason }
  var isDrained: Bool { process.isDrained }

  /// One turn, and what it may do in one. If requests are sliced, also the turns until all that is stored was executed.
  ///
  /// - Parameter disturb: what others do between two of these turns.
  func runTurn(_ disturb: () -> Void = {}) throws(SimulationFailure) {
    for _ in 0..<100_000 {
      try runSlice()
      if !isSliced || !process.status.isExecuting || process.isDrained { return }
      disturb()
    }
    throw SimulationFailure("the daemon executes a batch and gets nowhere")
  }

  private func runSlice() throws(SimulationFailure) {
    turns += 1
    let commits = engine.commitCount
    try process.run(at: now)
    engine.checkInvariants()
    let status = process.status
    if !status.isExclusive {
      (log as? StoredLog)?.workOnImage(
        executed: status.executed, steps: engine.catalog.stepsTaken,
        stateBytes: engine.catalog.accounts.total.bytes, isBusy: status.hadInput
      ) { engine.catalog.makeImage() }
    }
    try checkBudget(commits: engine.commitCount &- commits)
  }

  func drain() { process.drain() }

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
    if let disk {
      // Closes the files.
      try replace(Self.makeEngine(limits, epoch: epoch, seed: 1, now: now), MemoryLog(window: 1))
      if case .powerLoss(let seed) = end { try disk.losePower(seed) }
      try start(disk)
    } else if let log = log as? MemoryLog {
      var tail = 0
      if case .kill(let count) = end { tail = count }
      let survivors = log.survivors(tail: tail)
      let engine = Self.makeEngine(limits, epoch: epoch, seed: UInt64(starts), now: now)
      for batch in survivors { try batch.withLogBatch { try engine.replay($0) } }
      try replace(engine, MemoryLog(window: log.window, kept: survivors))
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
    try replace(engine, log)
  }

  private func replace(_ engine: Engine, _ log: any SimulatedLog) throws {
    self.engine = engine
    self.log = log
    let runner = { [isSliced] (name: String) -> (any SliceRunner)? in
      isSliced ? SlicedWork(name, slice: 0, isEager: true) : nil
    }
    process =
      usesLoop
      ? try LoopProcess(engine, log, now: now, makeRunner: runner)
      : TurnProcess(engine, log, now: now, makeRunner: runner)
  }

  // MARK: Auditing

  /// A turn takes a bounded amount of input, and lets no connection's queue grow beyond what its limits allow.
  private func checkBudget(commits: UInt64) throws(SimulationFailure) {
    let (largest, total) = link.takeBytesRead()
    if largest > 2 * Intake.bytesPerTurn { throw SimulationFailure("a turn read \(largest) bytes of a line") }
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

  func revision(of name: String) -> Int? { (try? engine.catalog.feed(named: name)).map { Int($0.revision) } }

  /// Each feed and bin has the revision of the last commit that changed what it shows.
  func compareRevisions(with oracle: Oracle) throws(SimulationFailure) {
    for name in oracle.names {
      let revision = revision(of: name)
      if oracle.allows(name, at: revision) { continue }
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
