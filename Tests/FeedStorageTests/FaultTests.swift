import FaultyDisk
import FaultyFiles
import FeedModel
import FeedSystem
import TestSupport
import Testing

@testable import FeedStorage

/// Tests that use the faulty disk, which is global to the process.
@Suite(.serialized) enum FaultyDiskTests {}

extension FaultyDiskTests {
  /// A failing disk: acknowledged requests stay, refused ones are not replayed, and storing resumes when the disk works.
  struct FaultTests {
    private let directory: TemporaryDirectory
    private var path: String { directory.file("state") }

    init() throws {
      expectEqual(faulty_disk_register(), 0)
      faulty_disk_fail(Int32(FAULTY_DISK_NOTHING), 0, 0)
      directory = try TemporaryDirectory()
    }

    private static let kinds = [
      FAULTY_DISK_FULL, FAULTY_DISK_WRITE, FAULTY_DISK_SYNC, FAULTY_DISK_SYNC_DIRECTORY,
    ]

    /// Turns with a fault at a random call, then an abrupt end, with or without the fault, and a start.
    @Test(arguments: 0..<TestEffort.count(8, long: 320)) func acknowledgedRequestsStayAndRefusedOnesAreNotReplayed(
      _ number: Int
    )
      throws
    {
      var requests = RandomRequests(seed: UInt64(number))
      let kind = Self.kinds[number % 4]
      var state: [String]?
      for life in 0..<3 {
        faulty_disk_fail(Int32(FAULTY_DISK_NOTHING), 0, 0)
        let daemon = try DurableEngine(
          path, policy: RecoveryTests.eager, durability: number / 4 % 2 == 0 ? .disk : .process, isFaulty: true)
        if let state {
          expectEqual(difference(daemon.visibleState, state), nil, "seed \(number), life \(life)")
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
            expectEqual(daemon.engine.catalog.revision, before, "seed \(number)")
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
          try expect(frames.allSatisfy { try !JSONValue($0).has("id") }, "seed \(number): \(frames)")
          expect(daemon.catalog.nextExpiry.map { $0 > daemon.now } ?? true, "seed \(number)")
          expect(revision > before, "seed \(number)")
        }
        state = daemon.visibleState
      }
      faulty_disk_fail(Int32(FAULTY_DISK_NOTHING), 0, 0)
    }

    /// A start ignores a commit that is complete in the log but could not be synced.
    @Test func batchThatCouldNotBeSyncedIsNotReplayed() throws {
      do {
        let daemon = try DurableEngine(path, durability: .disk, isFaulty: true)
        daemon.ask("define", #"{"feed":"list","kind":"array"}"#)
        faulty_disk_fail(Int32(FAULTY_DISK_SYNC), 0, 1)
        let answer = daemon.ask("insert", #"{"feed":"list","elements":["refused"]}"#)
        try expectEqual(JSONValue(answer)["error"]["code"].int, -32008)
        expectEqual(faulty_disk_failures(), 1)
      }
      let daemon = try DurableEngine(path, durability: .disk, isFaulty: true)
      let sections = try JSONValue(daemon.ask("snapshot", #"{"feed":"list"}"#))["result"]["sections"]
      expectEqual(sections.elements.map { $0["count"].int }, [0])
    }

    private static func update(_ id: String, bytes: Int = 1) -> String {
      let text = String(repeating: "x", count: bytes)
      return #"{"feed":"c","element":{"id":"\#(id)","text":"\#(text)"}}"#
    }

    /// A segment whose name could not be synced is used all the same: a start reads it and ignores what follows in the one
    /// before.
    @Test("a new segment is used after its directory could not be synced", arguments: [false, true])
    func directorySyncFailsForTheNextSegment(_ isAlsoSmall: Bool) throws {
      let state: [String]
      do {
        let daemon = try DurableEngine(path, durability: .disk, isFaulty: true)
        daemon.ask("define", #"{"feed":"c","kind":"collection"}"#)
        for id in 0..<3 { daemon.ask("update", Self.update("\(id)", bytes: 600_000)) }
        faulty_disk_fail(Int32(FAULTY_DISK_SYNC_DIRECTORY), 0, isAlsoSmall ? 3 : 1)
        try expectEqual(
          JSONValue(daemon.ask("update", Self.update("large", bytes: 600_000)))["error"]["code"].int, -32008)
        if isAlsoSmall {
          for _ in 0..<2 {
            try expectEqual(JSONValue(daemon.ask("update", Self.update("refused")))["error"]["code"].int, -32008)
          }
        }
        expectEqual(faulty_disk_failures(), isAlsoSmall ? 3 : 1)
        for id in 0..<20 { try expect(JSONValue(daemon.ask("update", Self.update("small \(id)"))).has("result")) }
        if isAlsoSmall {
          try expect(JSONValue(daemon.ask("update", Self.update("large", bytes: 900_000))).has("result"))
        }
        state = daemon.visibleState
      }
      let names = try SystemDirectory(path).names().filter { SegmentHeader.number(in: $0) != nil }
      expectEqual(names.sorted(), [SegmentHeader.name(of: 1), SegmentHeader.name(of: 2)])
      let daemon = try DurableEngine(path, durability: .disk, isFaulty: true)
      expectEqual(difference(daemon.visibleState, state), nil)
      expectEqual(daemon.log.beginning, .continued)
    }

    /// The segment before the one whose directory could not be synced says that another one follows, so a start misses it.
    @Test func segmentIsMissedAfterItsDirectoryCouldNotBeSynced() throws {
      do {
        let daemon = try DurableEngine(path, durability: .disk, isFaulty: true)
        daemon.ask("define", #"{"feed":"c","kind":"collection"}"#)
        for id in 0..<3 { daemon.ask("update", Self.update("\(id)", bytes: 600_000)) }
        faulty_disk_fail(Int32(FAULTY_DISK_SYNC_DIRECTORY), 0, 1)
        daemon.ask("update", Self.update("large", bytes: 600_000))
        try expect(JSONValue(daemon.ask("update", Self.update("small"))).has("result"))
      }
      try SystemDirectory(path).remove(SegmentHeader.name(of: 2))
      #expect(throws: StorageError.self) { try DurableEngine(path, durability: .disk, isFaulty: true) }
    }

    /// An empty segment is replaced under its name by a longer one, which is the only one from then on.
    @Test func directorySyncFailsForALongerSegment() throws {
      let state: [String]
      do {
        try DurableEngine(path, durability: .disk, isFaulty: true).ask("define", #"{"feed":"c","kind":"collection"}"#)
        // Other limits begin another segment.
        var limits = Limits()
        limits.maxFeeds += 1
        let daemon = try DurableEngine(path, durability: .disk, isFaulty: true, limits: limits)
        faulty_disk_fail(Int32(FAULTY_DISK_SYNC_DIRECTORY), 0, 1)
        let large = (0..<4).map { #"{"id":\#($0),"text":"\#(String(repeating: "x", count: 800_000))"}"# }
        let set = #"{"feed":"c","elements":[\#(large.joined(separator: ","))]}"#
        try expectEqual(JSONValue(daemon.ask("set", set))["error"]["code"].int, -32008)
        expectEqual(faulty_disk_failures(), 1)
        try expect(JSONValue(daemon.ask("set", set)).has("result"))
        try expect(JSONValue(daemon.ask("update", Self.update("small"))).has("result"))
        state = daemon.visibleState
      }
      expectEqual(difference(try DurableEngine(path, durability: .disk, isFaulty: true).visibleState, state), nil)
    }

    /// The first segment of a run is synced with any durability.
    @Test("a first segment is used after its directory could not be synced", arguments: [Durability.process, .disk])
    func directorySyncFailsAtAStart(_ durability: Durability) throws {
      var state: [String] = []
      for life in 0..<3 {
        // Other limits begin another segment.
        var limits = Limits()
        limits.maxFeeds += life
        faulty_disk_fail(Int32(FAULTY_DISK_NOTHING), 0, 0)
        if life > 0 {
          let daemon = try DurableEngine(path, durability: durability, isFaulty: true, limits: limits)
          expectEqual(difference(daemon.visibleState, state), nil)
          limits.maxFeeds += 10
        }
        // With durability disk, a start also syncs the directory before.
        faulty_disk_fail(Int32(FAULTY_DISK_SYNC_DIRECTORY), durability == .disk ? 1 : 0, 2)
        let daemon = try DurableEngine(path, durability: durability, isFaulty: true, limits: limits)
        try expectEqual(JSONValue(daemon.ask("update", Self.update("refused")))["error"]["code"].int, -32008)
        daemon.ask("define", #"{"feed":"c","kind":"collection"}"#)
        for id in 0..<20 { try expect(JSONValue(daemon.ask("update", Self.update("\(life) \(id)"))).has("result")) }
        expectEqual(faulty_disk_failures(), 2)
        state = daemon.visibleState
      }
      faulty_disk_fail(Int32(FAULTY_DISK_NOTHING), 0, 0)
      expectEqual(difference(try DurableEngine(path, durability: durability, isFaulty: true).visibleState, state), nil)
    }

    /// A batch without room waits for an image, which lets segments be removed.
    @Test func fullDiskIsRelievedByAnImage() throws {
      let daemon = try DurableEngine(path, isFaulty: true)
      daemon.ask("define", #"{"feed":"c","kind":"collection"}"#)
      let text = String(repeating: "x", count: 100_000)
      // The current segment and the spare are not enough for all.
      faulty_disk_fail(Int32(FAULTY_DISK_FULL), 0, 2)
      for number in 0..<80 {
        let answer = daemon.ask("update", #"{"feed":"c","element":{"id":\#(number % 2),"text":"\#(text)"}}"#)
        try expect(JSONValue(answer).has("result"), "\(number): \(answer)")
      }
      expectEqual(faulty_disk_failures(), 2)
      let state = daemon.visibleState
      try expectEqual(difference(DurableEngine(path, isFaulty: true).visibleState, state), nil)
    }

    /// A full disk refuses what needs space, and takes what frees some, also after a restart.
    @Test func fullDiskAllowsReadsAndDeletions() throws {
      let text = String(repeating: "x", count: 100_000)
      func update(_ id: Int) -> String { #"{"feed":"c","element":{"id":\#(id),"text":"\#(text)"}}"# }
      var count = 0
      do {
        let daemon = try DurableEngine(path, isFaulty: true)
        daemon.ask("define", #"{"feed":"c","kind":"collection"}"#)
        daemon.ask("update", #"{"feed":"c","element":{"id":"first"}}"#)
        faulty_disk_fail(Int32(FAULTY_DISK_FULL), 0, 1_000_000)
        var error: JSONValue = "null"
        while try JSONValue(daemon.ask("update", update(count)))["result"].has("added") { count += 1 }
        for _ in 0..<3 {
          error = try JSONValue(daemon.ask("update", update(count)))["error"]
          expectEqual(error["code"].int, -32008)
          expectEqual(error["message"].string?.contains("free space on its file system"), true)
          try expectEqual(
            JSONValue(daemon.ask("get", #"{"feed":"c","id":"first"}"#))["result"]["element"], #"{"id":"first"}"#)
        }
        try expect(JSONValue(daemon.ask("delete", #"{"feed":"c","id":0}"#))["result"].has("deleted"))
        expect(daemon.turn([DurableEngine.request("watch", #"{"feed":"c"}"#)]).count >= 2)
      }
      let daemon = try DurableEngine(path, isFaulty: true)
      try expect(JSONValue(daemon.ask("delete", #"{"feed":"c","id":1}"#))["result"].has("deleted"))
      let transaction = #"{"ops":[{"method":"delete","params":{"feed":"c","id":2}}]}"#
      try expect(JSONValue(daemon.ask("transaction", transaction)).has("result"))
      faulty_disk_fail(Int32(FAULTY_DISK_NOTHING), 0, 0)
      try expect(JSONValue(daemon.ask("update", update(count + 1)))["result"].has("added"))
    }

    /// A start would miss the segment that continues the image, and refuse the state.
    @Test("without room for a segment no image of a new epoch is written", arguments: [false, true])
    func noImageWithoutASegment(isAfterALossOfPower: Bool) throws {
      try PrivateDirectory.make(path)
      let files = FaultyDirectory(path)
      var state: [String]?
      if isAfterALossOfPower {
        do {
          let daemon = try DurableEngine(path, epoch: "first", files: files, boot: "first")
          daemon.ask("define", #"{"feed":"c","kind":"collection"}"#)
          try expect(JSONValue(daemon.ask("update", Self.update("a"))).has("result"))
          state = daemon.engine.content
        }
        for name in SpareSegments.names { try files.remove(name) }
      }
      do {
        faulty_disk_fail(Int32(FAULTY_DISK_FULL), 0, 1_000_000)
        let daemon = try DurableEngine(path, epoch: "second", files: files, boot: "second")
        expectEqual(daemon.log.beginning, isAfterALossOfPower ? .cut : .new)
        if let state { expectEqual(difference(daemon.engine.content, state), nil) }
        state = daemon.engine.content
        try expectEqual(
          JSONValue(daemon.ask("define", #"{"feed":"d","kind":"collection"}"#))["error"]["code"].int, -32008)
        expect(!daemon.log.wantsImage && !daemon.writeImage())
        daemon.stop()
      }
      faulty_disk_fail(Int32(FAULTY_DISK_NOTHING), 0, 0)
      let daemon = try DurableEngine(path, epoch: "third", files: files, boot: "second")
      expectEqual(difference(daemon.engine.content, state ?? []), nil)
      try expect(JSONValue(daemon.ask("define", #"{"feed":"d","kind":"collection"}"#)).has("result"))
      expect(daemon.writeImage())
      let last = daemon.engine.content
      try expectEqual(
        difference(DurableEngine(path, epoch: "fourth", files: files, boot: "second").engine.content, last), nil)
    }

    /// An image that cannot be written is abandoned; the log contains all batches.
    @Test func failedImageLosesNothing() throws {
      var state: [String] = []
      do {
        let daemon = try DurableEngine(path, isFaulty: true)
        var failures: [String] = []
        daemon.log.report = { isFailure, text in failures += isFailure ? [text] : [] }
        daemon.ask("define", #"{"feed":"c","kind":"collection"}"#)
        for number in 0..<500 { daemon.ask("update", #"{"feed":"c","element":{"id":\#(number)}}"#) }
        faulty_disk_fail(Int32(FAULTY_DISK_WRITE), 0, 1)
        expect(!daemon.writeImage())
        expect(failures.count == 1 && failures[0].contains("nothing is lost"))
        faulty_disk_fail(Int32(FAULTY_DISK_NOTHING), 0, 0)
        daemon.ask("update", #"{"feed":"c","element":{"id":1000}}"#)
        state = daemon.visibleState
      }
      let daemon = try DurableEngine(path, isFaulty: true)
      expectEqual(daemon.found.imageRevision, 0)
      expectEqual(difference(daemon.visibleState, state), nil)
    }
  }
}
