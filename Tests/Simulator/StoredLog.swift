import FaultyDisk
import FaultyFiles
import FeedModel
import FeedSystem
import Glibc
import TestSupport

import FeedEngine
import FeedServer
import FeedStorage
@testable import ReferenceModel

/// The shipped log on a simulated disk: writes and syncs fail, the disk fills up, and a loss of power tears what was not
/// synced.
///
/// The log's threads do not run; ``work()`` does what they would do. So everything follows from the seed.
final class StoredLog: SimulatedLog, ImageStore {
  /// What a process leaves behind.
  final class Disk {
    let durability: Durability
    private let directory: TemporaryDirectory
    private let files: SimulatedDirectory
    /// Starts of the system: a loss of power ends one.
    private var boots = 1
    private var epochs = 0
    private let journalBytes: Int
    private let losesSyncs: Bool
    /// What fails from the next start on, and how often; nil for nothing.
    var failureAtStart: (kind: Int, count: Int)?

    /// - Parameters:
    ///   - journalBytes: bytes of journal above which an image is written.
    ///   - losesSyncs: whether syncs do nothing, to show that it would be noticed.
    init(_ durability: Durability, journalBytes: Int = 1 << 20, losesSyncs: Bool = false) throws {
      directory = try TemporaryDirectory()
      files = SimulatedDirectory(directory.path)
      self.durability = durability
      self.journalBytes = journalBytes
      self.losesSyncs = losesSyncs
      guard simulated_disk_register() == 0 else { throw SimulationFailure("the simulated disk is not registered") }
      simulated_disk_reset()
    }

    /// The power fails.
    /// - Parameter seed: decides what is lost.
    func losePower(_ seed: UInt64) throws {
      var random = SeededRandom(seed: seed)
      files.losePower { Int(random.next() % UInt64($0)) }
      if simulated_disk_lose_power(seed) < 0 { throw SimulationFailure("the simulated disk cannot be written") }
      simulated_disk_reset()
      boots += 1
    }

    /// Whether the last start may begin a new epoch, and may have lost acknowledged changes.
    var mayLoseChanges: Bool { durability == .process }

    fileprivate func open() throws -> FileLog {
      let failure = failureAtStart ?? (FAULTY_DISK_NOTHING, 0)
      failureAtStart = nil
      simulated_disk_fail(Int32(failure.kind), 0, Int32(failure.count))
      simulated_disk_ignore_syncs(losesSyncs ? 1 : 0)
      epochs += 1
      var policy = ImagePolicy()
      policy.journalBytes = journalBytes
      // Real time must not decide anything.
      policy.interval = 1 << 30
      (policy.idle, policy.step) = (1 << 60, 1 << 60)
      return try FileLog.open(
        directory.path, durability: durability, freshEpoch: "epoch\(epochs)", policy: policy, software: "0",
        boot: "boot \(boots)", files: files, vfs: "simulated")
    }
  }

  let disk: Disk
  private let log: FileLog
  /// Whether the log's thread waits for the disk.
  private var isHeld = false
  /// The batch that is neither stored nor failed.
  private(set) var inFlight: StoredRequests?
  private var outcomes: [(batch: StoredRequests, failure: String?)] = []
  private(set) var longest = 0

  /// Opens what is on the disk.
  init(_ disk: Disk) throws {
    self.disk = disk
    log = try disk.open()
  }

  var epoch: String { log.epoch }

  /// Fills the engine. Returns the newest moment that was stored.
  func recover(into engine: Engine, _ limits: Limits) throws -> Instant {
    let found = try log.recover(into: engine)
    engine.endReplay(limits)
    try log.startStepwise(limits)
    return Instant(nanoseconds: found.newestMoment)
  }

  // MARK: The log

  var window: Int { log.window }
  var storesNothing: Bool { log.storesNothing }
  /// Real time decides when the log looks for room again, so each batch is tried.
  var shortage: String? { nil }
  var descriptor: Int32? { log.descriptor }
  var isIdle: Bool { inFlight == nil }

  var hasEvents: Bool {
    guard let descriptor else { return false }
    return (try? Readiness.readable.wait(on: descriptor, timeout: .zero))?.isEmpty == false
  }

  func append(_ batch: LogBatch) {
    longest = max(longest, batch.frames.count)
    inFlight = StoredRequests(batch)
    log.append(batch)
  }

  func nextEvent() -> LogEvent? {
    let event = log.nextEvent()
    switch event {
    case .stored, .failed:
      guard let batch = inFlight else { preconditionFailure("an event without a batch") }
      var failure: String?
      if case .failed(_, _, let reason) = event { failure = reason }
      outcomes.append((batch, failure))
      inFlight = nil
    case .ordered, .received, .mark, .lost, nil: break
    }
    return event
  }

  func takeOutcomes() -> [(batch: StoredRequests, failure: String?)] {
    defer { outcomes = [] }
    return outcomes
  }

  func close(within nanoseconds: UInt64) { log.close(within: nanoseconds) }

  // MARK: Images

  var imagePause: UInt64? { log.imagePause }

  func workOnImage(
    executed number: UInt64?, steps: UInt64, stateBytes: Int, isBusy: Bool, _ makeImage: () -> CatalogImage
  ) {
    log.workOnImage(executed: number, steps: steps, stateBytes: stateBytes, isBusy: isBusy, makeImage)
  }

  // MARK: Disturbances

  func work() {
    while !isHeld && log.step() {}
  }

  func disturb(_ generator: inout TreeGenerator) -> String {
    switch generator.below(9) {
    case 0:
      isHeld = true
      return "the log's thread waits"
    case 1: return fail(FAULTY_DISK_FULL, "the disk is full", &generator)
    case 2: return fail(FAULTY_DISK_WRITE, "writes fail", &generator)
    case 3: return fail(FAULTY_DISK_SYNC, "syncs fail", &generator)
    case 4: return fail(FAULTY_DISK_SYNC_AND_WRITE, "a sync fails, then writes", &generator)
    default:
      calm()
      return "the disk works"
    }
  }

  private func fail(_ kind: Int, _ text: String, _ generator: inout TreeGenerator) -> String {
    let (after, count) = (generator.below(6), 1 + generator.below(20))
    simulated_disk_fail(Int32(kind), Int32(after), Int32(count))
    return "\(text): \(count) calls after \(after)"
  }

  func calm() {
    simulated_disk_fail(Int32(FAULTY_DISK_NOTHING), 0, 0)
    isHeld = false
    work()
  }
}
