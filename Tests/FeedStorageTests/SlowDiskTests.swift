import FaultyDisk
import FeedModel
import TestSupport
import Testing

@testable import FeedStorage

extension FaultyDiskTests {
  /// A disk that takes long to sync delays only the requests that wait for it.
  @Suite struct SlowDiskTests {
    private let directory: TemporaryDirectory
    private var path: String { directory.file("state.sqlite") }

    init() throws {
      directory = try TemporaryDirectory()
      #expect(faulty_disk_register() == 0)
      faulty_disk_fail(Int32(FAULTY_DISK_NOTHING), 0, 0)
    }

    private func update(_ id: Int, request: Int = 1) -> String {
      DurableEngine.request("update", #"{"feed":"c","element":{"id":\#(id)}}"#, id: request)
    }

    private func get(_ id: Int, request: Int = 1) -> String {
      DurableEngine.request("get", #"{"feed":"c","id":\#(id)}"#, id: request)
    }

    private func start(_ durability: Durability = .disk) throws -> DurableEngine {
      let daemon = try DurableEngine(path, durability: durability, vfs: "faulty")
      daemon.ask("define", #"{"feed":"c","kind":"collection"}"#)
      daemon.ask("update", #"{"feed":"c","element":{"id":1}}"#)
      return daemon
    }

    @Test func othersAreAnsweredDuringASyncAndTheirWritesAreStoredTogether() throws {
      let daemon = try start()
      let (writer, reader, other) = (daemon.connect(), daemon.connect(), daemon.connect())
      let row = daemon.log.lastRow
      faulty_disk_hold_syncs(1)
      defer { faulty_disk_hold_syncs(0) }
      daemon.send(writer, [update(2)])
      daemon.run()
      faulty_disk_wait_for_sync()

      // Reads of other connections see the state before the batch.
      daemon.send(reader, [DurableEngine.request("ping", "{}"), get(1, request: 2), get(2, request: 3)])
      daemon.run()
      let read = daemon.take(reader)
      #expect(read.count == 3)
      #expect(read.dropFirst().first?.contains(#"{"id":1}"#) == true)
      #expect(read.last?.contains(#"{"id":2}"#) == false)

      // A read behind a write of its own connection waits for it. Other writes wait for the next batch.
      daemon.send(writer, [get(2, request: 2), update(3, request: 3)])
      for number in 1...20 { daemon.send(other, [update(number + 10, request: number)]) }
      daemon.run()
      #expect(daemon.take(writer).isEmpty && daemon.take(other).isEmpty)
      #expect(daemon.log.lastRow == row)

      faulty_disk_hold_syncs(0)
      daemon.settle()
      let written = daemon.take(writer)
      #expect(written.count == 3)
      for (place, answer) in written.enumerated() { #expect(answer.contains(#""id":\#(place + 1),"result""#)) }
      #expect(written.dropFirst().first?.contains(#"{"id":2}"#) == true)
      let others = daemon.take(other)
      for (place, answer) in others.enumerated() { #expect(answer.contains(#""id":\#(place + 1),"result""#)) }
      #expect(others.count == 20)
      #expect(daemon.log.lastRow == row + 2, "one batch was in flight, and one took all that came meanwhile")
    }

    @Test func aFailedSyncRefusesTheRequestsOfItsBatchOnly() throws {
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
        #expect(answers.count == 2 && answers[0].contains("-32008") && answers[1].contains(#"{"id":1}"#))
        #expect(daemon.take(other).first?.contains("added") == true)
      }
      let daemon = try DurableEngine(path, durability: .disk, vfs: "faulty")
      #expect(daemon.ask("get", #"{"feed":"c","id":2}"#).contains(#"{"id":2}"#) == false)
      #expect(daemon.ask("get", #"{"feed":"c","id":3}"#).contains(#"{"id":3}"#))
    }

    @Test func batchesThatAreNotSyncedDoNotWaitForTheDisk() throws {
      let daemon = try start(.process)
      faulty_disk_hold_syncs(1)
      defer { faulty_disk_hold_syncs(0) }
      for number in 2..<10 {
        #expect(daemon.ask("update", #"{"feed":"c","element":{"id":\#(number)}}"#).contains("added"))
      }
    }

    /// The image waits for the disk on the log's thread, not on the engine's.
    @Test func anImageDoesNotDelayOthers() throws {
      var policy = ImagePolicy()
      policy.journalBytes = 1
      let daemon = try DurableEngine(path, policy: policy, vfs: "faulty")
      daemon.ask("define", #"{"feed":"c","kind":"collection"}"#)
      for number in 0..<50 { daemon.ask("update", #"{"feed":"c","element":{"id":\#(number)}}"#) }
      faulty_disk_hold_syncs(1)
      defer { faulty_disk_hold_syncs(0) }
      while let pause = daemon.log.imagePause, pause == 0 { daemon.workOnImage() }
      #expect(daemon.ask("get", #"{"feed":"c","id":1}"#).contains(#"{"id":1}"#))
    }
  }
}
