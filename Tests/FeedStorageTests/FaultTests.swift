import FaultyDisk
import FeedModel
import FeedSQLite
import FeedStorage
import FeedSystem
import TestSupport
import Testing

/// Tests that use the faulty disk, which is global to the process.
@Suite(.serialized) enum FaultyDiskTests {}

extension FaultyDiskTests {
  /// A failing disk: acknowledged requests stay, refused ones are not replayed, and storing resumes when the disk works.
  @Suite struct FaultTests {
    init() {
      #expect(faulty_disk_register() == 0)
      faulty_disk_fail(Int32(FAULTY_DISK_NOTHING), 0, 0)
    }

    private static let kinds = [FAULTY_DISK_FULL, FAULTY_DISK_WRITE, FAULTY_DISK_SYNC]

    /// Turns with a fault at a random call, then an abrupt end, with or without the fault, and a start.
    @Test(arguments: 0..<TestEffort.count(12, long: 300)) func acknowledgedRequestsStayAndRefusedOnesAreNotReplayed(
      _ number: Int
    )
      throws
    {
      let directory = try TemporaryDirectory()
      let path = directory.file("state.sqlite")
      var requests = RandomRequests(seed: UInt64(number))
      let kind = Self.kinds[number % 3]
      var state: [String]?
      for life in 0..<3 {
        faulty_disk_fail(Int32(FAULTY_DISK_NOTHING), 0, 0)
        let daemon = try DurableEngine(
          path, policy: RecoveryTests.eager, durability: number % 2 == 0 ? .disk : .process, vfs: "faulty")
        if let state {
          #expect(difference(daemon.visibleState, state) == nil, "seed \(number), life \(life)")
        } else {
          for definition in RandomRequests.definitions { daemon.ask("define", definition) }
          daemon.ask("set", #"{"feed":"c","elements":\#(requests.elements(300))}"#)
        }
        faulty_disk_fail(Int32(kind), Int32(requests.number(0..<300)), Int32(requests.number(1..<20)))
        for _ in 0..<requests.number(20..<80) {
          let before = daemon.engine.catalog.revision
          let answers = daemon.turn([requests.next(), requests.next()])
          // A turn is stored completely or not at all.
          if try answers.contains(where: { try JSONValue($0)["error"]["code"].int == -32008 }) {
            #expect(daemon.engine.catalog.revision == before, "seed \(number)")
          }
          daemon.workOnImage()
          // The end can directly follow a failure.
          if faulty_disk_failures() > 0 && requests.number(0..<4) == 0 { break }
        }
        // The next start would execute an eviction that could not be stored.
        let before = daemon.catalog.revision
        if let due = daemon.catalog.nextExpiry, due <= daemon.now {
          faulty_disk_fail(Int32(FAULTY_DISK_NOTHING), 0, 0)
          // No request waited: only elements whose time is over leave.
          let (frames, revision) = (daemon.turn([], later: 2), daemon.catalog.revision)
          #expect(try frames.allSatisfy { try !JSONValue($0).has("id") }, "seed \(number): \(frames)")
          #expect(daemon.catalog.nextExpiry.map { $0 > daemon.now } ?? true, "seed \(number)")
          #expect(revision > before, "seed \(number)")
        }
        state = daemon.visibleState
      }
      faulty_disk_fail(Int32(FAULTY_DISK_NOTHING), 0, 0)
    }

    /// A start ignores a commit that is complete in the log but could not be synced.
    @Test func batchThatCouldNotBeSyncedIsNotReplayed() throws {
      let directory = try TemporaryDirectory()
      let path = directory.file("state.sqlite")
      do {
        let daemon = try DurableEngine(path, durability: .disk, vfs: "faulty")
        daemon.ask("define", #"{"feed":"list","kind":"array"}"#)
        faulty_disk_fail(Int32(FAULTY_DISK_SYNC), 0, 1)
        let answer = daemon.ask("insert", #"{"feed":"list","elements":["refused"]}"#)
        #expect(try JSONValue(answer)["error"]["code"].int == -32008)
        #expect(faulty_disk_failures() == 1)
      }
      let daemon = try DurableEngine(path, durability: .disk, vfs: "faulty")
      let sections = try JSONValue(daemon.ask("snapshot", #"{"feed":"list"}"#))["result"]["sections"]
      #expect(sections.elements.map { $0["count"].int } == [0])
    }

    /// A log that fills the disk is truncated, because the database file already contains most of it.
    @Test func fullDiskIsRelievedByTruncatingTheLog() throws {
      let directory = try TemporaryDirectory()
      let path = directory.file("state.sqlite")
      let daemon = try DurableEngine(path, vfs: "faulty")
      daemon.ask("define", #"{"feed":"c","kind":"collection"}"#)
      for _ in 0..<20 { daemon.ask("update", #"{"feed":"c","element":{"id":1}}"#) }
      let length = FileSize.of(path + "-wal") ?? 0
      faulty_disk_fail(Int32(FAULTY_DISK_FULL), 0, 1)
      #expect(try JSONValue(daemon.ask("update", #"{"feed":"c","element":{"id":2}}"#))["result"].has("added"))
      #expect(faulty_disk_failures() == 1)
      #expect(FileSize.of(path + "-wal") ?? 0 < length)
      let state = daemon.visibleState
      #expect(try difference(DurableEngine(path, vfs: "faulty").visibleState, state) == nil)
    }

    @Test func fullDiskAllowsReadsAndStoringResumes() throws {
      let directory = try TemporaryDirectory()
      let daemon = try DurableEngine(directory.file("state.sqlite"), vfs: "faulty")
      daemon.ask("define", #"{"feed":"c","kind":"collection"}"#)
      daemon.ask("update", #"{"feed":"c","element":{"id":1}}"#)
      faulty_disk_fail(Int32(FAULTY_DISK_FULL), 0, 1_000_000)
      for _ in 0..<3 {
        let error = try JSONValue(daemon.ask("update", #"{"feed":"c","element":{"id":2}}"#))["error"]
        #expect(error["code"].int == -32008)
        #expect(error["message"].string?.contains("free space on its file system") == true)
        #expect(try JSONValue(daemon.ask("get", #"{"feed":"c","id":1}"#))["result"]["element"] == #"{"id":1}"#)
      }
      #expect(daemon.turn([DurableEngine.request("watch", #"{"feed":"c"}"#)]).count == 2)
      faulty_disk_fail(Int32(FAULTY_DISK_NOTHING), 0, 0)
      let update = DurableEngine.request("update", #"{"feed":"c","element":{"id":3}}"#)
      // The watcher receives its delta before the answer.
      let frames = try daemon.turn([update]).map { try JSONValue($0) }
      #expect(frames.contains { $0["result"].has("added") }, "\(frames)")
    }

    /// An image that cannot be written is abandoned; the journal contains all batches.
    @Test func failedImageLosesNothing() throws {
      let directory = try TemporaryDirectory()
      let path = directory.file("state.sqlite")
      var state: [String] = []
      do {
        let daemon = try DurableEngine(path, vfs: "faulty")
        var failures: [String] = []
        daemon.log.report = { isFailure, text in failures += isFailure ? [text] : [] }
        daemon.ask("define", #"{"feed":"c","kind":"collection"}"#)
        for number in 0..<500 { daemon.ask("update", #"{"feed":"c","element":{"id":\#(number)}}"#) }
        faulty_disk_fail(Int32(FAULTY_DISK_WRITE), 0, 1)
        #expect(!daemon.writeImage())
        #expect(failures.count == 1 && failures[0].contains("nothing is lost"))
        faulty_disk_fail(Int32(FAULTY_DISK_NOTHING), 0, 0)
        daemon.ask("update", #"{"feed":"c","element":{"id":1000}}"#)
        state = daemon.visibleState
      }
      let daemon = try DurableEngine(path, vfs: "faulty")
      #expect(daemon.found.imageRevision == 0)
      #expect(difference(daemon.visibleState, state) == nil)
    }
  }
}
