import FaultyDisk
import FeedEngine
import FeedModel
import FeedStorage
import TestSupport
import Testing

@testable import ReferenceModel
@testable import Simulator

/// What the simulator found, as short histories.
extension SimulationTests {
  /// A sync that fails may lose what was written before it, and later syncs succeed without it.
  @Test("what is acknowledged after failed syncs survives a loss of power", arguments: UInt64(1)...12)
  func failedSyncs(_ seed: UInt64) throws {
    let disk = try StoredLog.Disk(.disk)
    let daemon = try SimulatedDaemon(limits: Limits(), window: 1, disk: disk)
    daemon.link.isCalm = true
    let line = daemon.link.connect(Peer(uid: 0, gid: 0, pid: 1))
    func define(_ name: String) throws -> String {
      let request =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"define\",\"params\":{\"feed\":\"\(name)\",\"kind\":\"array\"}}"
      daemon.link.send(line, FrameText.frame(request))
      while daemon.isDue {
        try daemon.runTurn()
        daemon.log.work()
      }
      var answers = daemon.link.take(line)
      return FrameText.take(from: &answers).joined()
    }
    try daemon.runTurn()
    simulated_disk_fail(Int32(FAULTY_DISK_SYNC), 0, 1_000_000)
    try expect(define("a").contains("-32008"))
    try expect(define("b").contains("-32008"))
    simulated_disk_fail(Int32(FAULTY_DISK_NOTHING), 0, 0)
    try expect(define("c").contains("result"))
    try daemon.restart(.powerLoss(seed))
    expect(daemon.content(of: "c") != nil)
  }

  /// A kill leaves a batch whose sync failed; the system may have dropped what it still shows to the next start.
  @Test("what a start finds behind a failed sync survives a loss of power", arguments: UInt64(1)...12)
  func startAfterFailedSync(_ seed: UInt64) throws {
    let disk = try StoredLog.Disk(.disk)
    let daemon = try SimulatedDaemon(limits: Limits(), window: 1, disk: disk)
    daemon.link.isCalm = true
    let line = daemon.link.connect(Peer(uid: 0, gid: 0, pid: 1))
    try daemon.runTurn()
    simulated_disk_fail(Int32(FAULTY_DISK_SYNC_AND_WRITE), 0, 20)
    let request = #"{"jsonrpc":"2.0","id":1,"method":"define","params":{"feed":"a","kind":"array"}}"#
    daemon.link.send(line, FrameText.frame(request))
    try daemon.runTurn()
    daemon.log.work()
    expect(simulated_disk_failures() > 0)
    try daemon.restart(.kill(tail: 0))
    expect(daemon.content(of: "a") != nil)
    try daemon.restart(.powerLoss(seed))
    expect(daemon.content(of: "a") != nil)
  }

  /// The log that a start finds cannot be moved into the database: what it shows may be lost with the power, which the
  /// start after that must not take for damage.
  @Test(
    "a start that cannot make its log durable survives a loss of power",
    arguments: [FAULTY_DISK_SYNC, FAULTY_DISK_SYNC_AND_WRITE, FAULTY_DISK_FULL], UInt64(1)...12)
  func startOnAFailingDisk(_ kind: Int, _ seed: UInt64) throws {
    let disk = try StoredLog.Disk(.disk)
    let daemon = try SimulatedDaemon(limits: Limits(), window: 1, disk: disk)
    daemon.link.isCalm = true
    let line = daemon.link.connect(Peer(uid: 0, gid: 0, pid: 1))
    try daemon.runTurn()
    simulated_disk_fail(Int32(FAULTY_DISK_SYNC_AND_WRITE), 0, 20)
    let request = #"{"jsonrpc":"2.0","id":1,"method":"define","params":{"feed":"a","kind":"array"}}"#
    daemon.link.send(line, FrameText.frame(request))
    try daemon.runTurn()
    daemon.log.work()
    expect(simulated_disk_failures() > 0)
    disk.failureAtStart = (kind, 1)
    try daemon.restart(.kill(tail: 0))
    // A full disk does not matter: the last segment is continued.
    expect(simulated_disk_failures() == (kind == FAULTY_DISK_FULL ? 0 : 1))
    let (shown, epoch) = (daemon.content(of: "a") != nil, daemon.epoch)
    try daemon.restart(.powerLoss(seed))
    // Watchers may know a revision that is lost.
    if shown && daemon.content(of: "a") == nil { expect(daemon.epoch != epoch) }
  }
}
