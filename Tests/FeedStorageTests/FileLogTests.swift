import FaultyDisk
import FeedEngine
import FaultyFiles
import FeedModel
import FeedSystem
import Glibc
import TestSupport
import Testing

@testable import FeedStorage

/// Owns the frames of a batch.
private final class FrameMemory {
  let bytes: UnsafeRawBufferPointer

  init(_ frames: [UInt8]) {
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: frames.count, alignment: 1)
    memory.copyBytes(from: frames)
    bytes = UnsafeRawBufferPointer(memory)
  }

  deinit { UnsafeMutableRawBufferPointer(mutating: bytes).deallocate() }
}

/// A state that follows a log: appends batches, executes stored ones, and writes images like a turn.
private final class LogDriver {
  let log: FileLog
  let engine: Engine
  let found: RecoveryProgress
  private let filler: Filler
  private(set) var executed: UInt64 = 0
  private var number: UInt64 = 0
  private var now: UInt64
  private var waiting: LogBatch?

  init(_ path: String, durability: Durability = .process, isFaulty: Bool = false) throws {
    try PrivateDirectory.make(path)
    log = try FileLog.open(
      path, durability: durability, freshEpoch: "fresh", software: "0",
      files: isFaulty ? FaultyDirectory(path) : nil, vfs: isFaulty ? "faulty" : nil)
    let identity = ServerIdentity(version: "0", epoch: log.epoch, pid: 1, uid: 0, durability: "process")
    engine = Engine(limits: Limits(), identity: identity, seed: 3, isDurable: true, now: Instant(nanoseconds: 0))
    filler = Filler(engine)
    found = try log.recover(into: filler)
    now = found.newestMoment
    engine.use(Limits())
    try log.start(Limits())
  }

  /// Appends requests to the log as one batch.
  func append(_ requests: [String]) {
    var frames: [UInt8] = []
    for request in requests {
      withUnsafeBytes(of: UInt32(request.utf8.count).bigEndian) { frames += Array($0) }
      frames += Array(request.utf8)
    }
    let memory = FrameMemory(frames)
    number += 1
    now += 1_000_000
    let batch = LogBatch(
      number: number, at: Instant(nanoseconds: now), revision: engine.catalog.revision, frames: memory.bytes,
      owner: memory)
    waiting = batch
    log.append(batch)
  }

  /// Waits for the event of the batch in flight, without executing it.
  /// - Parameter writes: whether images are written meanwhile, as a turn does. The batch may wait for one.
  func event(writingImages writes: Bool = false) -> LogEvent {
    while true {
      if let event = log.nextEvent() { return event }
      if writes && log.isAwaitingRoom { workOnImage() }
      var request = pollfd(fd: log.descriptor ?? -1, events: Int16(POLLIN), revents: 0)
      _ = poll(&request, 1, -1)
    }
  }

  func execute() throws {
    guard let batch = waiting else { return }
    waiting = nil
    try filler.replay(batch, rules: ExecutionRules.current)
    executed = batch.number
  }

  /// Stores and executes requests. Returns the reason for which they were refused; nil if they were stored.
  @discardableResult
  func run(_ requests: String...) throws -> String? {
    append(requests)
    switch event(writingImages: true) {
    case .stored:
      try execute()
      return nil
    case .failed(_, _, let reason):
      waiting = nil
      return reason
    default: return "unexpected"
    }
  }

  var content: [String] { engine.content }

  private func workOnImage() {
    log.workOnImage(executed: executed, steps: engine.catalog.stepsTaken, stateBytes: 0, isBusy: false) {
      engine.catalog.makeImage()
    }
  }
}

private func request(_ method: String, _ params: String) -> String { DurableEngine.request(method, params) }
private let define = request("define", #"{"feed":"list","kind":"array"}"#)
private func insert(_ text: String) -> String { request("insert", #"{"feed":"list","elements":["\#(text)"]}"#) }

extension FaultyDiskTests {
  struct FileLogTests {
    private let directory: TemporaryDirectory
    private var path: String { directory.file("state") }

    init() throws {
      directory = try TemporaryDirectory()
      expectEqual(faulty_disk_register(), 0)
      faulty_disk_fail(Int32(FAULTY_DISK_NOTHING), 0, 0)
    }

    @Test func batchWithoutSyncIsStoredWithinAppend() throws {
      let driver = try LogDriver(path)
      try driver.run(define)
      // While the log's thread holds the database, as after its start, it stores the batch.
      for _ in 0..<10_000 {
        driver.append([insert("a")])
        let isAtOnce = driver.log.nextEvent() != nil
        if !isAtOnce { _ = driver.event() }
        try driver.execute()
        expect(driver.log.nextEvent() == nil)
        if isAtOnce { return }
      }
      Issue.record("no append stored its batch before it returned")
    }

    @Test func appendReturnsWhileTheDiskSyncs() throws {
      let driver = try LogDriver(path, durability: .disk, isFaulty: true)
      try driver.run(define)
      faulty_disk_hold_syncs(1)
      driver.append([insert("a")])
      // The sync cannot end, so there must be no event.
      expect(driver.log.nextEvent() == nil)
      faulty_disk_wait_for_sync()
      expect(driver.log.nextEvent() == nil)
      faulty_disk_hold_syncs(0)
      guard case .stored(through: 2) = driver.event() else {
        Issue.record("the batch was not stored")
        return
      }
    }

    /// A batch whose sync failed is refused only after it was erased.
    @Test func unsyncedBatchStaysInFlight() throws {
      do {
        let driver = try LogDriver(path, durability: .disk, isFaulty: true)
        try driver.run(define)
        faulty_disk_fail(Int32(FAULTY_DISK_SYNC_AND_WRITE), 0, 1_000_000)
        driver.append([insert("unknown")])
        faulty_disk_wait_for_failures(3)
        expect(driver.log.nextEvent() == nil)
        faulty_disk_fail(Int32(FAULTY_DISK_NOTHING), 0, 0)
        guard case .failed(from: 2, through: 2, _) = driver.event() else {
          Issue.record("the batch was not refused")
          return
        }
      }
      try expectEqual(LogDriver(path, durability: .disk, isFaulty: true).found.batches, 1)
    }

    /// A batch that does not fit in the current segment needs another one.
    @Test func fullDiskRefusesBatchesAndStoringResumes() throws {
      let driver = try LogDriver(path, isFaulty: true)
      try driver.run(define)
      let long = insert(String(repeating: "x", count: 3 << 20))
      faulty_disk_fail(Int32(FAULTY_DISK_FULL), 0, 1_000_000)
      for _ in 0..<3 { try expectEqual(driver.run(long)?.contains("free space on its file system"), true) }
      try expectEqual(driver.run(insert("short")), nil, "space was allocated before")
      faulty_disk_fail(Int32(FAULTY_DISK_NOTHING), 0, 0)
      try expectEqual(driver.run(long), nil)
    }

    /// Batches that are stored but not executed when an image is made are replayed after it.
    @Test func imageCoversOnlyExecutedBatches() throws {
      do {
        let driver = try LogDriver(path)
        try driver.run(define)
        try driver.run(insert("executed"))
        driver.append([insert("stored")])
        guard case .stored(through: 3) = driver.event() else { return }
        driver.log.writeImage(executed: 2, { driver.engine.catalog.makeImage() })
      }
      let driver = try LogDriver(path)
      expectEqual(driver.found.batches, 1)
      expect(driver.content.contains { $0.contains("\"stored\"") })
    }

    /// An image that becomes due while a batch is executed in part would have a part of its changes.
    @Test func imageBeginsBetweenTwoBatches() throws {
      let driver = try LogDriver(path)
      try driver.run(define)
      var images = 0
      for executed in [nil, driver.executed] {
        expectEqual(images, 0)
        driver.log.workOnImage(executed: executed, steps: .max / 2, stateBytes: 0, isBusy: true) {
          images += 1
          return driver.engine.catalog.makeImage()
        }
      }
      expectEqual(images, 1)
    }

    @Test func batchesInFlightNameTheirPlaces() {
      var batches = BatchesInFlight(after: 7)
      let nothing = UnsafeRawBufferPointer(start: nil, count: 0)
      func batch(_ number: UInt64) -> LogBatch {
        LogBatch(number: number, at: Instant(nanoseconds: 0), revision: 0, frames: nothing)
      }
      expectEqual(batches.place(of: .max), 7)
      for (number, place) in [(UInt64(1), UInt64(8)), (2, 12), (3, 13)] {
        batches.begin(batch(number))
        _ = batches.didStore(number, as: place)
        guard case .stored(through: number)? = batches.takeEvent() else {
          Issue.record("no event of batch \(number)")
          return
        }
      }
      expect(batches.place(of: 2) == 12 && batches.place(of: 3) == 13 && batches.place(of: .max) == 13)
      batches.begin(batch(4))
      batches.didFail(4, "why")
      guard case .failed(from: 4, through: 4, reason: "why")? = batches.takeEvent() else {
        Issue.record("no event of batch 4")
        return
      }
      expectEqual(batches.place(of: .max), 13)
    }
  }
}
