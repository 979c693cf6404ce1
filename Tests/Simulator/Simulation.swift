import FeedModel
import Glibc
import TestSupport

import FeedEngine
@testable import ReferenceModel

/// One history of a daemon and its clients, all of it decided by a seed and the list of its steps.
///
/// A step is a number from which all its decisions follow, so that a history without some of its steps is a history as well.
/// That is how a failing one is shortened. After each turn the auditor compares everything that can be seen.
final class Simulation {
  let daemon: SimulatedDaemon
  var oracle: Oracle
  let clients: [SimulatedClient]
  /// Decides the step at hand.
  var generator: TreeGenerator
  /// Whether each step is printed when it is done, for a history that crashes the process.
  private static let printsTrace = getenv("FEEDD_TRACE") != nil
  /// What was done, for a failing history.
  private(set) var trace: [String] = []
  private let seed: UInt64
  private let sabotage: Sabotage?
  /// Whether elements expire as time passes.
  private let expires: Bool
  /// The batches that failed since one was stored.
  private var failed: [StoredRequests] = []
  /// What happened to the daemon, so that a run shows that it met what it is made for.
  private var met: [String: Int] = [:]

  /// One history in eight is of the shipped log on a simulated disk, the others of a log in memory. One in ten is of the shipped
  /// event loop, and one in three of the others slices each request as finely as possible.
  init(seed: UInt64, sabotage: Sabotage? = nil) throws {
    self.seed = seed
    self.sabotage = sabotage
    generator = TreeGenerator(random: SeededRandom(seed: seed))
    var limits = Limits()
    if generator.chance(60) {
      limits.maxFrame = 16384
      limits.maxQueue = 4096
    }
    if generator.chance(30) { limits.maxQueuePerUser = 24 << 10 }
    if generator.chance(50) { limits.historyBytes = generator.pick([0, 500, 3000]) }
    if generator.chance(20) { limits.maxConnections = 4 }
    if generator.chance(20) { limits.maxWatches = 3 }
    limits.bookmarkInterval = generator.pick([1, 5, 30])
    limits.historySeconds = generator.pick([2, 20, 3600])
    let window = generator.pick([1, 1, 3])
    let usesDisk = sabotage.map { $0 == .losesSyncs } ?? (seed % 8 == 0)
    var disk: StoredLog.Disk?
    if usesDisk {
      let losesSyncs = sabotage == .losesSyncs
      disk = try StoredLog.Disk(
        generator.chance(50) || losesSyncs ? .disk : .process, journalBytes: generator.pick([1000, 8000, 1 << 20]),
        losesSyncs: losesSyncs)
    }
    let usesLoop = seed % 10 == 8
    // A loop that ends because its log is lost leaves a sliced request unfinished, with which nobody could go on.
    daemon = try SimulatedDaemon(
      limits: limits, window: window, disk: disk, isSliced: seed % 3 == 1 && !usesLoop, usesLoop: usesLoop)
    oracle = Oracle(mayLose: disk?.mayLoseChanges == true)
    expires = generator.chance(60)
    clients = (0..<(2 + generator.below(4))).map {
      let uid = $0 < 2 ? 1000 : 2000 + UInt32($0 % 2)
      return SimulatedClient(number: $0, uid: uid, isHonest: $0 < 2, maxFrame: limits.maxFrame)
    }
  }

  /// The steps of a seed.
  static func steps(of seed: UInt64, count: Int) -> [UInt64] {
    var random = SeededRandom(seed: seed ^ 0x51D0_7E55)
    return (0..<count).map { _ in random.next() }
  }

  /// Runs a history to its end, where everybody has caught up and left.
  func run(_ steps: [UInt64]) throws {
    for client in clients { connect(client) }
    try turns(2)
    for step in steps {
      begin(step)
      try self.step()
      try turns(1 + generator.below(4))
    }
    begin(seed)
    try settle()
    try daemon.compare(with: oracle)
    try crash(.kill(tail: 0))
    try leave()
  }

  /// What happened to the clients.
  var events: [String: Int] {
    var events = met
    events.merge([
      "turns": daemon.turns, "starts": daemon.starts, "commits": oracle.revision, "eviction": oracle.evictions,
    ]) { $0 + $1 }
    for client in clients { events.merge(client.events) { $0 + $1 } }
    return events
  }

  private func begin(_ seed: UInt64) {
    generator.random = SeededRandom(seed: seed)
    if expires { generator.now = daemon.now.milliseconds }
    daemon.link.reseed(seed)
  }

  func note(_ text: String) {
    trace.append(text)
    if Self.printsTrace { print(text) }
  }

  // MARK: Turns

  /// Some turns, as far as they are due. Some of what was sent arrives before each.
  func turns(_ count: Int) throws {
    for _ in 0..<count {
      transmit()
      daemon.log.work()
      guard daemon.isDue else { return }
      try turn()
    }
  }

  private func turn() throws {
    let before = oracle.revision
    try daemon.runTurn(disturb)
    for (batch, failure) in daemon.log.takeOutcomes() {
      try oracle.execute(batch, failure: failure)
      if failure == nil { failed = [] } else { failed.append(batch) }
      if failure != nil { met["failed batch", default: 0] += 1 }
    }
    guard Int(daemon.engine.catalog.revision) == oracle.revision else {
      throw SimulationFailure("the daemon is at revision \(daemon.engine.catalog.revision), not \(oracle.revision)")
    }
    if oracle.revision != before {
      try daemon.compareRevisions(with: oracle)
      if oracle.mayLearn { for name in oracle.names { oracle.learn(name, at: daemon.revision(of: name)) } }
    }
    for client in clients { try receive(client) }
  }

  /// What happens between two turns of a sliced request: more of what was sent arrives, and now and then a client is lost.
  private func disturb() {
    guard generator.chance(20) else { return }
    transmit()
    daemon.log.work()
    if generator.below(200) == 0, !daemon.link.isCalm { lose(generator.pick(clients), isNoticed: generator.chance(50)) }
  }

  private func receive(_ client: SimulatedClient) throws {
    guard let line = client.line else { return }
    var bytes = daemon.link.take(line)
    if sabotage == .losesAFrame { FrameText.removeFirst(of: &bytes, where: { $0.contains("\"delta\"") }) }
    try client.receive(bytes, oracle)
    guard daemon.link.isClosed(line) else { return }
    let isExpected =
      client.farewell == "limit" || client.farewell == "shutdown" || client.hasEnded || daemon.lossReason != nil
    if client.isHonest && !isExpected && !daemon.link.isBroken(line) {
      throw SimulationFailure("the daemon closed honest client \(client.number): \(client.farewell ?? "without bye")")
    }
    note("the daemon closed client \(client.number): \(client.farewell ?? "without bye")")
    client.disconnect()
  }

  private func transmit() {
    for client in clients {
      guard let line = client.line, daemon.link.isOpen(line), !client.outbox.isEmpty else { continue }
      let count =
        daemon.link.isCalm || generator.chance(60)
        ? client.outbox.count : generator.below(min(client.outbox.count, 400) + 1)
      daemon.link.send(line, client.outbox.prefix(count))
      client.outbox.removeFirst(count)
    }
  }

  // MARK: Connections

  func connect(_ client: SimulatedClient) {
    let peer = Peer(uid: client.uid, gid: client.uid, pid: Int32(client.number + 100))
    client.connect(line: daemon.link.connect(peer), epoch: daemon.epoch)
    note("client \(client.number) connects")
  }

  /// The network loses a client.
  func lose(_ client: SimulatedClient, isNoticed: Bool) {
    guard let line = client.line else { return }
    note("client \(client.number) is lost\(isNoticed ? "" : ", unnoticed")")
    daemon.link.lose(line, isNoticed: isNoticed)
    client.disconnect()
  }

  // MARK: The end of a process

  func crash(_ end: SimulatedDaemon.End) throws {
    if daemon.disk == nil { try crashInMemory(end) } else { try crashOnDisk(end) }
  }

  private func crashInMemory(_ end: SimulatedDaemon.End) throws {
    guard let log = daemon.log as? MemoryLog else { return }
    var tail = 0
    if case .kill(let count) = end { tail = min(count, log.inFlight.count) }
    let unexecuted = log.unexecuted(tail: tail)
    note("the daemon crashes; \(unexecuted.count) unacknowledged batches are kept")
    let selections = daemon.selections()
    switch sabotage {
    case .forgetsABatch: log.forget()
    case .keepsAFailedBatch: log.keepFailed()
    default: break
    }
    try daemon.restart(.kill(tail: tail))
    for client in clients { client.disconnect() }
    for batch in unexecuted { try oracle.execute(batch, failure: nil) }
    try daemon.compare(with: oracle)
    if unexecuted.isEmpty { try compareSelections(selections) }
  }

  /// After a kill everything acknowledged is there, in the same epoch. After a loss of power that holds with durability
  /// `disk`; with `process` the state may be an older one, in a new epoch.
  private func crashOnDisk(_ end: SimulatedDaemon.End) throws {
    guard let disk = daemon.disk else { return }
    defer { failed = [] }
    // No reference to the log may stay: its files must be closed.
    let inFlight = (daemon.log as? StoredLog)?.inFlight
    let (epoch, selections) = (daemon.epoch, daemon.selections())
    var isPowerLoss = false
    if case .powerLoss = end { isPowerLoss = true }
    note("\(isPowerLoss ? "the power fails" : "the daemon is killed"), durability \(disk.durability)")
    try daemon.restart(end)
    for client in clients { client.disconnect() }
    let isContinued = daemon.epoch == epoch
    met[isPowerLoss ? "power loss" : "kill", default: 0] += 1
    if !isContinued { met["new epoch", default: 0] += 1 }
    if !isContinued && !(isPowerLoss && disk.mayLoseChanges) { throw SimulationFailure("a new epoch begins") }
    let mismatch = Result { try daemon.compare(with: oracle) }
    if case .success = mismatch { return isPowerLoss ? () : try compareSelections(selections) }
    if let inFlight {
      // It may have been stored.
      var later = oracle
      try later.execute(inFlight, failure: nil)
      if (try? daemon.compare(with: later)) != nil {
        met["unacknowledged batch kept", default: 0] += 1
        return oracle = later
      }
    }
    for batch in isPowerLoss ? failed : [] {
      // Its sync failed; the disk may have kept what was written.
      var later = oracle
      try later.executeKept(batch)
      if (try? daemon.compare(with: later)) != nil {
        met["refused batch kept", default: 0] += 1
        return oracle = later
      }
    }
    if !isContinued && disk.mayLoseChanges {
      met["changes lost", default: 0] += 1
      while oracle.goBack() { if (try? daemon.compare(with: oracle)) != nil { return } }
    }
    try mismatch.get()
  }

  private func compareSelections(_ selections: [String: [[Int]]]) throws(SimulationFailure) {
    guard daemon.selections() == selections else {
      throw SimulationFailure("the selections are \(daemon.selections()) after replay, not \(selections)")
    }
  }

  /// Stops the daemon in order and starts it again. While it waits for a log in memory, that may store late or fail. A disk
  /// works: it would leave half of the note of a clean stop, which the kernel writes as a whole.
  func stop() throws {
    note("the daemon stops")
    calm(includingLog: daemon.disk != nil || generator.chance(50))
    daemon.drain()
    for _ in 0..<60 {
      try turns(50)
      if daemon.isDrained { break }
      daemon.log.calm()
      daemon.advance(seconds: 1)
    }
    guard daemon.isDrained else { throw SimulationFailure("the daemon does not stop") }
    guard daemon.log.isIdle else { throw SimulationFailure("the daemon stops before the log has stored everything") }
    daemon.log.close(within: .max)
    try crash(.kill(tail: 0))
    daemon.link.isCalm = false
  }

  // MARK: Settling

  /// From here on the network and the log behave, and everybody reads.
  private func calm(includingLog: Bool = true) {
    daemon.link.isCalm = true
    if includingLog { daemon.log.calm() }
    for client in clients { if let line = client.line { daemon.link.setRoom(line, nil) } }
  }

  /// Turns until nothing is due.
  private func rest() throws {
    for _ in 0..<400 {
      transmit()
      daemon.log.work()
      if !daemon.isDue { return }
      try turn()
    }
    throw SimulationFailure("the daemon says that it has work and gets nowhere")
  }

  /// Lets everybody catch up, and compares all copies with what the daemon holds now.
  func settle() throws {
    calm()
    try rest()
    // Throttles are over then.
    for _ in 0..<3 {
      daemon.advance(seconds: 1)
      try rest()
    }
    for client in clients where client.isConnected && !client.isDoomed && !client.hasEnded {
      if client.pending > 0 { throw SimulationFailure("client \(client.number) waits for \(client.pending) answers") }
      for (feed, mirror) in client.mirrors {
        guard mirror.isLive, mirror.sections == oracle.content(of: feed) else {
          throw SimulationFailure("client \(client.number) has \(mirror), not \(oracle.content(of: feed) ?? [])")
        }
      }
    }
    daemon.link.isCalm = false
  }

  /// Everybody leaves; nothing of them is left. One more connection sees the gauges.
  private func leave() throws {
    for client in clients {
      connect(client)
    }
    try turns(2)
    for client in clients { lose(client, isNoticed: generator.chance(50)) }
    calm()
    try rest()
    try daemon.checkIsEmpty()
    try checkGauges()
  }

  /// What `stats` and `clients` say to the only connection.
  private func checkGauges() throws {
    let line = daemon.link.connect(Peer(uid: SimulatedDaemon.owner, gid: 0, pid: 1))
    try turns(2)
    for method in ["stats", "clients"] {
      daemon.link.send(line, FrameText.frame("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\(method)\"}"))
    }
    try rest()
    var bytes = daemon.link.take(line)
    let results = FrameText.take(from: &bytes).compactMap { Value($0)?["result"] }
    guard results.count == 2 else { throw SimulationFailure("stats and clients give \(results)") }
    for (gauge, count) in ["connectionsOpen": 1, "watches": 0, "queuedBytes": 0, "heldBytes": 0] {
      guard results[0][gauge]?.int == count else { throw SimulationFailure("\(gauge) is not \(count): \(results[0])") }
    }
    guard results[1]["clients"]?.items.count == 1 else {
      throw SimulationFailure("connections are left: \(results[1])")
    }
  }
}
