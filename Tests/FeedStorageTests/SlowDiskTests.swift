import FaultyDisk
import FeedModel
import TestSupport
import Testing

@testable import FeedStorage

extension FaultyDiskTests {
  /// A slow sync delays only the requests that wait for it.
  struct SlowDiskTests {
    private let directory: TemporaryDirectory
    private var path: String { directory.file("state") }

    init() throws {
      directory = try TemporaryDirectory()
      expectEqual(faulty_disk_register(), 0)
      faulty_disk_fail(Int32(FAULTY_DISK_NOTHING), 0, 0)
    }

    private func update(_ id: Int, request: Int = 1) -> String {
      DurableEngine.request("update", #"{"feed":"c","element":{"id":\#(id)}}"#, id: request)
    }

    private func get(_ id: Int, request: Int = 1) -> String {
      DurableEngine.request("get", #"{"feed":"c","id":\#(id)}"#, id: request)
    }

    private func start(_ durability: Durability = .disk) throws -> DurableEngine {
      let daemon = try DurableEngine(path, durability: durability, isFaulty: true)
      daemon.ask("define", #"{"feed":"c","kind":"collection"}"#)
      daemon.ask("update", #"{"feed":"c","element":{"id":1}}"#)
      return daemon
    }

    @Test func syncDoesNotDelayReadsAndGroupsWrites() throws {
      let daemon = try start()
      let (writer, reader, other) = (daemon.connect(), daemon.connect(), daemon.connect())
      let last = daemon.log.lastBatch
      faulty_disk_hold_syncs(1)
      defer { faulty_disk_hold_syncs(0) }
      daemon.send(writer, [update(2)])
      daemon.run()
      faulty_disk_wait_for_sync()

      // Reads of other connections see the state before the batch.
      daemon.send(reader, [DurableEngine.request("ping", "{}"), get(1, request: 2), get(2, request: 3)])
      daemon.run()
      let read = daemon.take(reader)
      expectEqual(read.count, 3)
      try expectEqual(JSONValue(read.dropFirst().first)["result"]["element"], #"{"id":1}"#)
      try expectEqual(JSONValue(read.last)["result"]["element"], "null")

      // A read waits for an earlier write of its own connection. Other writes wait for the next batch.
      daemon.send(writer, [get(2, request: 2), update(3, request: 3)])
      for number in 1...20 { daemon.send(other, [update(number + 10, request: number)]) }
      daemon.run()
      expect(daemon.take(writer).isEmpty && daemon.take(other).isEmpty)
      expectEqual(daemon.log.lastBatch, last)

      faulty_disk_hold_syncs(0)
      daemon.settle()
      let written = daemon.take(writer)
      expectEqual(written.count, 3)
      let frames = try written.map { try JSONValue($0) }
      expect(frames.map { $0["id"].int } == [1, 2, 3] && frames.allSatisfy { $0.has("result") })
      expectEqual(frames.dropFirst().first?["result"]["element"], #"{"id":2}"#)
      let others = daemon.take(other)
      let answers = try others.map { try JSONValue($0) }
      expect(answers.map { $0["id"].int } == Array(1...20) && answers.allSatisfy { $0.has("result") })
      expectEqual(daemon.log.lastBatch, last + 2, "the requests that arrived during the sync must form one batch")
    }

    @Test func failedSyncRefusesOnlyTheRequestsOfItsBatch() throws {
      do {
        let daemon = try start()
        let (writer, other) = (daemon.connect(), daemon.connect())
        faulty_disk_fail(Int32(FAULTY_DISK_SYNC), 0, 1)
        faulty_disk_hold_syncs(1)
        defer { faulty_disk_hold_syncs(0) }
        daemon.send(writer, [update(2), get(1, request: 2)])
        daemon.run()
        faulty_disk_wait_for_sync()
        daemon.send(other, [update(3)])
        daemon.run()
        faulty_disk_hold_syncs(0)
        daemon.settle()
        let answers = daemon.take(writer)
        expectEqual(answers.count, 2)
        try expectEqual(JSONValue(answers.first)["error"]["code"].int, -32008)
        try expectEqual(JSONValue(answers.last)["result"]["element"], #"{"id":1}"#)
        try expect(JSONValue(daemon.take(other).first)["result"].has("added"))
      }
      let daemon = try DurableEngine(path, durability: .disk, isFaulty: true)
      try expectEqual(JSONValue(daemon.ask("get", #"{"feed":"c","id":2}"#))["result"]["element"], "null")
      try expectEqual(JSONValue(daemon.ask("get", #"{"feed":"c","id":3}"#))["result"]["element"], #"{"id":3}"#)
    }

    @Test func batchesWithoutSyncDoNotWaitForTheDisk() throws {
      let daemon = try start(.process)
      faulty_disk_hold_syncs(1)
      defer { faulty_disk_hold_syncs(0) }
      for number in 2..<10 {
        expect(try JSONValue(daemon.ask("update", #"{"feed":"c","element":{"id":\#(number)}}"#))["result"].has("added"))
      }
    }

    /// An image waits for the disk on the log's thread, not on the engine's.
    @Test func imageDoesNotDelayRequests() throws {
      var policy = ImagePolicy()
      policy.journalBytes = 1
      let daemon = try DurableEngine(path, policy: policy, isFaulty: true)
      daemon.ask("define", #"{"feed":"c","kind":"collection"}"#)
      for number in 0..<50 { daemon.ask("update", #"{"feed":"c","element":{"id":\#(number)}}"#) }
      faulty_disk_hold_syncs(1)
      defer { faulty_disk_hold_syncs(0) }
      while let pause = daemon.log.imagePause, pause == 0 { daemon.workOnImage() }
      try expectEqual(JSONValue(daemon.ask("get", #"{"feed":"c","id":1}"#))["result"]["element"], #"{"id":1}"#)
    }
  }
}
