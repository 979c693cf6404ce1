import FeedModel
import FeedSystem
@testable import FeedStorage
import TestSupport
import Testing

/// A start restores the stored state.
struct RecoveryTests {
  private let directory: TemporaryDirectory
  private var path: String { directory.file("state") }

  init() throws { directory = try TemporaryDirectory() }

  /// Images of one part a step whenever there is a journal, so that histories end with images in every state.
  static var eager: ImagePolicy {
    var policy = ImagePolicy()
    policy.journalBytes = 4000
    policy.step = 1
    return policy
  }

  private func play(_ daemon: DurableEngine, _ requests: inout RandomRequests, turns: Int) {
    for _ in 0..<turns {
      let count = requests.number(1..<6)
      _ = daemon.turn((0..<count).map { _ in requests.next() }, later: Double(requests.number(1..<400)) / 1000)
      daemon.workOnImage()
    }
  }

  @Test(arguments: 0..<TestEffort.count(8, long: 200)) func randomHistoriesAreRecovered(_ number: Int) throws {
    let seed = UInt64(number)
    var requests = RandomRequests(seed: seed)
    var before: (revision: UInt64, state: [String], resumptions: [String])?
    for life in 0..<6 {
      // Only the files of the previous daemon are left.
      let daemon = try DurableEngine(path, policy: Self.eager)
      if let before {
        expectEqual(daemon.engine.catalog.revision, before.revision, "seed \(seed), life \(life)")
        expectEqual(difference(daemon.visibleState, before.state), nil, "seed \(seed), life \(life)")
        expectEqual(
          difference(Self.resumptions(daemon, before.revision), before.resumptions), nil, "seed \(seed), life \(life)"
        )
      } else {
        for definition in RandomRequests.definitions { daemon.ask("define", definition) }
        daemon.ask("set", #"{"feed":"c","elements":\#(requests.elements(600))}"#)
      }
      play(daemon, &requests, turns: requests.number(1..<120))
      let revision = daemon.engine.catalog.revision
      before = (revision, daemon.visibleState, Self.resumptions(daemon, revision))
    }
  }

  /// Returns the frames of watchers that resume from some revisions before.
  private static func resumptions(_ daemon: DurableEngine, _ revision: UInt64) -> [String] {
    ["c", "list", "tabs", "slots", "x/z"].flatMap { feed -> [String] in
      // A bin that was never watched has no history and would begin one now.
      guard let known = try? daemon.engine.catalog.feed(named: feed), known.history != nil else { return [feed] }
      return [1, 3, 10, 40].flatMap { (back: UInt64) -> [String] in
        let from = revision > back ? revision - back : 0
        let told = daemon.resume(feed, from: from, epoch: daemon.log.epoch)
        return ["\(feed) \(back)"] + told
      }
    }
  }

  @Test func cleanStopLeavesOnlyAnImage() throws {
    let daemon = try DurableEngine(path)
    daemon.ask("define", #"{"feed":"c","kind":"collection"}"#)
    for number in 0..<300 { daemon.ask("update", #"{"feed":"c","element":{"id":\#(number)}}"#) }
    let state = daemon.visibleState
    daemon.stop()
    let again = try DurableEngine(path)
    expectEqual(again.found.batches, 0)
    expectEqual(again.found.elements, 300)
    expectEqual(again.visibleState, state)
    expectEqual(again.log.epoch, daemon.log.epoch)
  }

  /// Whether the start reads an image or the log: a watcher that has the end of the feed before must not resume.
  @Test("a feed that replaced another one in one commit cannot be resumed from it", arguments: [false, true])
  func successorIsNotResumed(fromImage: Bool) throws {
    let daemon = try DurableEngine(path)
    let definition = #"{"feed":"c","kind":"collection"}"#
    daemon.ask("define", definition)
    let undefine = #"{"method":"undefine","params":{"feed":"c"}}"#
    daemon.ask("transaction", #"{"ops":[\#(undefine),{"method":"define","params":\#(definition)}]}"#)
    if fromImage { daemon.stop() }
    let again = try DurableEngine(path)
    expectEqual(again.found.batches == 0, fromImage)
    expectEqual(again.engine.catalog.revision, 2)
    func resumes(from revision: UInt64) throws -> JSONValue {
      try JSONValue(again.resume("c", from: revision, epoch: again.log.epoch)[0])["result"]["resumed"]
    }
    try expectEqual(resumes(from: 2), "false")
    again.ask("update", #"{"feed":"c","element":{"id":1}}"#)
    try expectEqual(resumes(from: 2), "false")
    try expectEqual(resumes(from: 3), "true")
  }

  @Test func batchesAreReplayedUnderTheirOwnLimits() throws {
    var few = Limits()
    few.maxElements = 3
    let daemon = try DurableEngine(path, limits: few)
    daemon.ask("define", #"{"feed":"c","kind":"collection"}"#)
    for number in 0..<5 { daemon.ask("update", #"{"feed":"c","element":{"id":\#(number)}}"#) }
    let state = daemon.ask("snapshot", #"{"feed":"c"}"#, later: 0)
    let again = try DurableEngine(path)
    expectEqual(again.ask("snapshot", #"{"feed":"c"}"#, later: 0), state)
    try expect(JSONValue(again.ask("update", #"{"feed":"c","element":{"id":9}}"#))["result"].has("added"))
    expectEqual(again.engine.limits, Limits())
  }

  /// The feeds of an image are restored without a limit on their sections, which must not become that of their requests.
  @Test func requestsBeyondALimitAreRefusedAgainAfterAnImage() throws {
    var few = Limits()
    few.maxSections = 3
    let daemon = try DurableEngine(path, limits: few)
    daemon.ask("define", #"{"feed":"c","kind":"collection","section":"$.s"}"#)
    for number in 0..<2 { daemon.ask("update", #"{"feed":"c","element":{"id":\#(number),"s":\#(number)}}"#) }
    expect(daemon.writeImage())
    let many = (0..<5).map { #"{"id":\#($0),"s":\#($0)}"# }.joined(separator: ",")
    let refused = daemon.ask("update", #"{"feed":"c","elements":[\#(many)]}"#)
    expectEqual(try JSONValue(refused)["error"]["data"]["limit"], #""maxSections""#)
    daemon.ask("define", #"{"feed":"other","kind":"array"}"#)
    expectEqual(try DurableEngine(path, limits: few).visibleState, daemon.visibleState)
  }

  @Test func timeContinuesAcrossRestarts() throws {
    let daemon = try DurableEngine(path, now: Instant(nanoseconds: 5_000_000_000))
    daemon.ask("define", #"{"feed":"old","kind":"collection","retain":{"seconds":10}}"#)
    daemon.ask("update", #"{"feed":"old","element":{"id":1}}"#)
    let late = try DurableEngine(path, now: Instant(nanoseconds: 2_000_000_000))
    expect(late.now > Instant(nanoseconds: 5_000_000_000))
    func counts(_ daemon: DurableEngine, later seconds: Double = 0.001) throws -> JSONValue {
      try JSONValue(daemon.ask("verify", #"{"feed":"old"}"#, later: seconds))["result"]["counts"]
    }
    try expectEqual(counts(late, later: 5), "[1]")
    // The eviction is stored in the first turn at which it is due, and visible afterwards.
    late.ask("ping", later: 6)
    try expectEqual(counts(late), "[0]")
    try expectEqual(counts(DurableEngine(path)), "[0]")
  }

  /// Runs that end before an image is written let the journal grow until a start writes the image.
  @Test func overdueImageIsWrittenAtStart() throws {
    var images = 0
    for life in 0..<6 {
      let daemon = try DurableEngine(path, policy: Self.eager)
      if daemon.log.isImageOverdue { images += 1 }
      if daemon.log.isImageOverdue {
        expect(daemon.writeImage())
        expect(!daemon.log.isImageOverdue)
      }
      if life == 0 { daemon.ask("define", #"{"feed":"c","kind":"collection"}"#) }
      for number in 0..<100 { daemon.ask("update", #"{"feed":"c","element":{"id":\#(number),"life":\#(life)}}"#) }
      expect(daemon.found.batches <= 210)
    }
    expect(images > 0)
  }

  /// `--skip-batch` omits a batch that does not terminate.
  @Test func skippedBatchBeginsANewEpoch() throws {
    do {
      let daemon = try DurableEngine(path, epoch: "first")
      daemon.ask("define", #"{"feed":"list","kind":"array"}"#)
      for text in ["a", "b", "c"] { daemon.ask("insert", #"{"feed":"list","elements":["\#(text)"],"at":[0]}"#) }
    }
    for batch in [Int64(0), 5] {
      let error = #expect(throws: StorageError.self) { try DurableEngine(path, epoch: "other", skipping: batch) }
      expectEqual(error?.kind, .noSuchBatch)
    }
    var state: [String] = []
    do {
      let daemon = try DurableEngine(path, epoch: "second", skipping: 3)
      expect(daemon.log.beginning == .skipped(3) && daemon.log.epoch == "second")
      let snapshot = try JSONValue(daemon.ask("snapshot", #"{"feed":"list"}"#))
      expectEqual(snapshot["result"]["sections"][0]["elements"], #"["c","a"]"#)
      expect(daemon.log.isImageOverdue && daemon.writeImage())
      state = daemon.visibleState
    }
    let error = #expect(throws: StorageError.self) { try DurableEngine(path, epoch: "other", skipping: 3) }
    expectEqual(error?.kind, .noSuchBatch)
    let again = try DurableEngine(path, epoch: "third")
    expect(again.log.epoch == "second" && again.log.beginning == .continued && again.found.batches == 0)
    expectEqual(difference(again.visibleState, state), nil)
  }

  private func failure(of request: String, revision: UInt64) throws -> StorageError? {
    do {
      try PrivateDirectory.make(path)
      let log = try FileLog.open(path, durability: .process, freshEpoch: "e", software: "0")
      try log.start(Limits())
      try log.store(DurableEngine.frame(request), revision: revision)
    }
    return #expect(throws: StorageError.self) { try DurableEngine(path) }
  }

  @Test func storedDefinitionThatDoesNotParseIsRefused() throws {
    let error = try failure(
      of: #"{"method":"$configure","params":{"define":[{"feed":"c","kind":"nothing"}],"undefine":[]}}"#, revision: 0)
    expectEqual(error?.kind, .doesNotFit)
    expectEqual(error?.reason.hasPrefix("cannot execute batch 1 of the log"), true)
  }

  @Test func batchOfALaterRevisionIsRefused() throws {
    let error = try failure(of: DurableEngine.request("define", #"{"feed":"c","kind":"array"}"#), revision: 2)
    expectEqual(error?.kind, .doesNotFit)
  }
}
