import FeedModel
import FeedServer
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

@Suite("Identities of deleted rows")
struct DeletedIdentityTests {
  private static let feeds = [
    #"{"feed":"bins","kind":"collection","bins":[{"name":"odd","filter":"@.v == 1","sort":[{"by":"$.n"}]},{"name":"all"}]}"#,
    #"{"feed":"keyed","kind":"collection","section":"$.v","bins":[{"name":"all","sort":[{"by":"$.n"}]}]}"#,
    #"{"feed":"list","kind":"array","id":"$.id"}"#,
    #"{"feed":"home","kind":"composed","children":["keyed","list","bins/odd"]}"#,
    #"{"feed":"tabs","kind":"segmented","children":["bins","keyed"]}"#,
    #"{"feed":"top","kind":"view","of":"home","filter":"@.n < 70","sort":[{"by":"$.n"}],"limit":9}"#,
    #"{"feed":"mixed","kind":"slots","contents":{"A":"list","B":"keyed"},"pattern":["A","B","A"]}"#,
  ]
  private static let names = ["bins", "keyed", "list", "home", "tabs", "top", "mixed", "bins/odd"]

  private let harness: EngineHarness
  private let writer: ConnectionID

  init() { (harness, writer) = Self.start(EngineHarness()) }

  private static func start(_ harness: EngineHarness) -> (EngineHarness, ConnectionID) {
    let writer = harness.connect()
    for feed in feeds { _ = harness.ask(writer, "define", feed) }
    return (harness, writer)
  }

  /// The bytes that each connection of a user is charged with, without those that are charged with nothing.
  private func charges(of uid: UInt32) -> [Int] {
    harness.engine.sessions.all.filter { $0.peer.uid == uid }.map(\.snapshots.bytes).filter { $0 > 0 }
  }

  @Test("the identities that a turn reads are part of the share of their user")
  func identitiesOfManyFeedsAreReadInSeveralTurns() {
    let client = harness.connect()
    let elements = (0..<4000).map { #"{"id":\#($0)}"# }.joined(separator: ",")
    let names = (0..<12).map { "a\($0)" }
    for name in names {
      _ = harness.ask(writer, "define", #"{"feed":"\#(name)","kind":"array","id":"$.id"}"#)
      _ = harness.ask(writer, "set", #"{"feed":"\#(name)","elements":[\#(elements)]}"#)
    }
    for name in names {
      harness.supply(client, "watch", #"{"feed":"\#(name)","ids":true,"initial":false}"#)
    }
    harness.turnOnce()
    let first = harness.take(client).count
    expect(first > 0 && first < 8)
    harness.turn()
    expectEqual(first + harness.take(client).count, 12)
  }

  @Test("an engine that ends frees a feed with watches that get identities")
  func endOfTheEngine() throws {
    weak var feed: Feed?
    do {
      let (harness, _) = Self.start(EngineHarness())
      for _ in 0..<2 { _ = harness.ask(harness.connect(), "watch", #"{"feed":"list","ids":true}"#) }
      feed = try harness.engine.catalog.feed(named: "list")
      expect(feed != nil)
    }
    expect(feed == nil)
  }

  @Test("each user is charged once for the identities of a feed, whoever of them watches")
  func identitiesAreChargedOncePerUser() throws {
    let elements = (0..<500).map { #"{"id":"identity \#($0)"}"# }.joined(separator: ",")
    _ = harness.ask(writer, "update", #"{"feed":"list","elements":[\#(elements)]}"#)
    let watchers = (0..<4).map { _ in harness.connect() } + [harness.connect(uid: 2000)]
    for watcher in watchers { _ = harness.ask(watcher, "watch", #"{"feed":"list","ids":true}"#) }
    let charge = try require(charges(of: 2000).first)
    expect(charge >= 500 * 16 && charges(of: 1000) == [charge])
    for watcher in watchers.prefix(3) {
      harness.disconnect(watcher)
      expect(charges(of: 1000) == [charge] && charges(of: 2000) == [charge])
    }
    _ = harness.ask(watchers[3], "unwatch", #"{"feed":"list"}"#)
    expect(charges(of: 1000) == [] && charges(of: 2000) == [charge])
    harness.disconnect(watchers[4])
    expectEqual(charges(of: 2000), [])
  }

  @Test("identities of rows that left are not charged any more when the history has lost the changes")
  func chargeFollowsTheHistory() throws {
    let watcher = harness.connect()
    _ = harness.ask(watcher, "watch", #"{"feed":"list","ids":true}"#)
    let elements = (0..<3000).map { #"{"id":"a long identity \#($0)"}"# }.joined(separator: ",")
    _ = harness.ask(writer, "update", #"{"feed":"list","elements":[\#(elements)]}"#)
    let charge = try require(charges(of: 1000).first)
    expect(charge > 3000 * 48)
    _ = harness.ask(writer, "set", #"{"feed":"list","elements":[]}"#)
    expectEqual(charges(of: 1000), [charge])
    // The history is trimmed after the bookmarks of a turn, and the identities at the next ones.
    harness.advance(seconds: 3700)
    harness.advance(seconds: 60)
    expectEqual(charges(of: 1000), [])
    let revision = harness.engine.catalog.revision
    _ = harness.ask(writer, "update", #"{"feed":"list","elements":[{"id":1},{"id":2}]}"#)
    _ = harness.ask(writer, "delete", #"{"feed":"list","id":1}"#)
    _ = deltas(watcher)
    let again = harness.connect()
    let since = #""since":{"epoch":"test","revision":\#(revision + 1)}"#
    let resumed = harness.ask(again, "watch", #"{"feed":"list","ids":true,\#(since)}"#)
    expectEqual(resumed.last.flatMap { Value($0)?["params"]?["deletedIDs"]?.text }, "[1]")
  }

  /// The history of a feed that took the place of another one does not reach to before its first change.
  @Test("the first change of a feed that took the place of another one tells the identities of its rows")
  func firstChangeOfASuccessorTellsIdentities() {
    let definition = #"{"feed":"next","kind":"array","id":"$.id"}"#
    let (former, watcher) = (harness.connect(), harness.connect())
    _ = harness.ask(writer, "define", definition)
    _ = harness.ask(former, "watch", #"{"feed":"next"}"#)
    let ops = [
      #"{"method":"undefine","params":{"feed":"next"}}"#, #"{"method":"define","params":\#(definition)}"#,
      #"{"method":"update","params":{"feed":"next","elements":[{"id":1},{"id":2},{"id":3}]}}"#,
    ]
    _ = harness.ask(writer, "transaction", #"{"ops":[\#(ops.joined(separator: ","))]}"#)
    _ = harness.ask(watcher, "watch", #"{"feed":"next","ids":true,"initial":false}"#)
    for id in 1...2 { _ = harness.ask(writer, "delete", #"{"feed":"next","id":\#(id)}"#) }
    let told = harness.take(watcher).compactMap { Value($0)?["params"]?["deletedIDs"]?.text }
    expectEqual(told, ["[1]", "[2]"])
  }

  /// A random request that changes some of the feeds.
  private static func request(_ random: inout SeededRandom) -> (String, String) {
    func below(_ most: Int) -> Int { Int.random(in: 0..<most, using: &random) }
    func element() -> String { #"{"id":\#(below(12)),"v":\#(below(3)),"n":\#(below(100))}"# }
    let feed = ["bins", "keyed", "list"][below(3)]
    switch below(10) {
    case 0...4:
      return (
        "update", #"{"feed":"\#(feed)","elements":[\#((0...below(3)).map { _ in element() }.joined(separator: ","))]}"#
      )
    case 5, 6: return ("delete", #"{"feed":"\#(feed)","ids":[\#(below(12)),\#(below(12))]}"#)
    case 7: return ("move", #"{"feed":"list","id":\#(below(12)),"to":0}"#)
    case 8: return ("activate", #"{"feed":"tabs","child":\#(below(3) - 1)}"#)
    default:
      let ops = [element(), element()].map {
        #"{"method":"update","params":{"feed":"\#(feed)","element":\#($0)}}"#
      }
      let delete = #"{"method":"delete","params":{"feed":"\#(feed)","where":"@.v == \#(below(3))"}}"#
      return ("transaction", #"{"ops":[\#(([delete] + ops).joined(separator: ","))]}"#)
    }
  }

  /// Applies notifications to copies, which checks the identities. Returns the number of deltas without identities.
  private static func apply(_ frames: [String], to mirrors: inout [String: Mirror], _ seed: UInt64) throws -> Int {
    var unknown = 0
    for text in frames {
      guard let frame = Value(text), let params = frame["params"], let name = params["feed"]?.string else { continue }
      if frame["method"]?.string == "snapshot" { try mirrors[name]?.take(snapshot: params) }
      guard frame["method"]?.string == "delta" else { continue }
      try mirrors[name]?.take(delta: params)
      if params["deletedIDs"]?.text == "null" { unknown += 1 }
      // Each row of these feeds has an identity.
      let ids = (params["deletedIDs"]?.items ?? []) + (params["deletedSectionIDs"]?.items.flatMap(\.items) ?? [])
      expect(ids.allSatisfy { $0.text != "null" }, "seed \(seed): \(text)")
    }
    return unknown
  }

  @Test("deltas of all kinds of feeds name the rows that left", arguments: [false, true])
  func histories(isEager: Bool) throws {
    var random = SeededRandom(seed: UInt64.random(in: 0...UInt64.max))
    let seed = random.seed
    let (harness, writer) = Self.start(
      isEager
        ? EngineHarness(
          slices: SlicedWork("slices", slice: 0, isEager: true), deltas: SlicedWork("deltas", slice: 0, isEager: true))
        : EngineHarness())
    var watcher = harness.connect()
    var mirrors: [String: Mirror] = [:]
    func watch(_ name: String, _ known: Mirror?) throws {
      var params = #""feed":"\#(name)","ids":true"#
      if let known { params += #","since":{"epoch":"test","revision":\#(known.revision)}"# }
      let frames = harness.ask(watcher, "watch", "{\(params)}")
      let result = try require(frames.first.flatMap { Value($0)?["result"] }, "\(frames)")
      mirrors[name] = try Mirror(result, since: known, initial: true)
      try expectEqual(Self.apply(Array(frames.dropFirst()), to: &mirrors, seed), 0, "seed \(seed)")
    }
    for name in Self.names { try watch(name, nil) }
    for _ in 0..<60 {
      // Sometimes the watcher stops reading, or leaves and resumes.
      let isSlow = Int.random(in: 0..<3, using: &random) == 0
      let leaves = Int.random(in: 0..<6, using: &random) == 0
      if isSlow { harness.stopped = [watcher] }
      if leaves { harness.disconnect(watcher) }
      for _ in 0...Int.random(in: 0..<4, using: &random) {
        let (method, params) = Self.request(&random)
        _ = harness.ask(writer, method, params)
      }
      if isSlow { harness.stopped = [] }
      if leaves {
        watcher = harness.connect()
        for (name, known) in mirrors { try watch(name, known) }
      }
      harness.turn()
      try expectEqual(Self.apply(harness.take(watcher), to: &mirrors, seed), 0, "seed \(seed)")
    }
    for (name, mirror) in mirrors {
      let digest = Value(harness.ask(writer, "verify", #"{"feed":"\#(name)"}"#).last ?? "")?["result"]?["digest"]
      expectEqual(digest?.string, mirror.digest, "seed \(seed)")
    }
  }

  private func deltas(_ watcher: ConnectionID) -> [Value] {
    harness.take(watcher).compactMap { Value($0) }.filter { $0["method"]?.string == "delta" }.compactMap {
      $0["params"]
    }
  }

  @Test("identities are told as JSON, and rows without one are null")
  func texts() {
    _ = harness.ask(writer, "define", #"{"feed":"plain","kind":"array"}"#)
    _ = harness.ask(writer, "define", #"{"feed":"both","kind":"composed","children":["plain","list"]}"#)
    _ = harness.ask(writer, "insert", #"{"feed":"plain","elements":[{"id":5}]}"#)
    let ids = [#""a\u0000\"""#, "1.50", "-0", "1e400", "12345678901234567890", #""""#]
    let elements = ids.map { #"{"id":\#($0)}"# }.joined(separator: ",")
    _ = harness.ask(writer, "insert", #"{"feed":"list","elements":[\#(elements)]}"#)
    let watcher = harness.connect()
    for feed in ["both", "list", "$feeds"] {
      _ = harness.ask(watcher, "watch", #"{"feed":"\#(feed)","ids":true}"#)
    }
    _ = harness.ask(writer, "remove", #"{"feed":"plain","at":0}"#)
    expectEqual(deltas(watcher).map { $0["deletedIDs"]?.text }, ["[null]"])
    _ = harness.ask(writer, "remove", #"{"feed":"list","at":[0,1,2,3,4,5]}"#)
    let told = #"["a\u0000\"",1.5,0,1e400,12345678901234567890,""]"#
    expectEqual(deltas(watcher).map { $0["deletedIDs"]?.text }, [told, told])
    _ = harness.ask(writer, "undefine", #"{"feed":"both"}"#)
    let ends = deltas(watcher)
    expectEqual(ends.first { $0["feed"]?.string == "both" }?["deletedIDs"]?.text, "null")
    expectEqual(ends.first { $0["feed"]?.string == "$feeds" }?["deletedIDs"]?.text, #"["both"]"#)
  }

  @Test("a watch that resumes from before the first one is told null, and later deltas have identities")
  func unknown() {
    _ = harness.ask(writer, "update", #"{"feed":"bins","elements":[{"id":1},{"id":2},{"id":3}]}"#)
    // The history of a feed begins with its definition.
    let since = #""since":{"epoch":"test","revision":\#(harness.engine.catalog.revision)}"#
    _ = harness.ask(writer, "delete", #"{"feed":"bins","id":1}"#)
    let watcher = harness.connect()
    let resumed = harness.ask(watcher, "watch", #"{"feed":"bins","ids":true,\#(since)}"#).compactMap { Value($0) }
    expectEqual(resumed.first?["result"]?["resumed"]?.bool, true)
    expectEqual(resumed.last?["params"]?["deletedIDs"]?.text, "null")
    _ = harness.ask(writer, "delete", #"{"feed":"bins","id":2}"#)
    expectEqual(deltas(watcher).map { $0["deletedIDs"]?.text }, ["[2]"])
  }

  @Test("other watches get the same bytes as before, and counts have no identities")
  func others() {
    let (plain, other) = (harness.connect(), harness.connect())
    _ = harness.ask(plain, "watch", #"{"feed":"list","initial":false}"#)
    _ = harness.ask(other, "watch", #"{"feed":"list","initial":false,"ids":false}"#)
    _ = harness.ask(harness.connect(), "watch", #"{"feed":"list","ids":true}"#)
    for (method, params) in [
      ("insert", #"{"feed":"list","element":{"id":1}}"#), ("remove", #"{"feed":"list","at":0}"#),
    ] { _ = harness.ask(writer, method, params) }
    let frames = harness.take(plain)
    expectEqual(frames, harness.take(other))
    expect(frames.count == 2 && frames.allSatisfy { !$0.contains("IDs") })
    let refused = Value(harness.ask(plain, "watch", #"{"feed":"list","ids":true,"elements":false}"#).last ?? "")
    expectEqual(refused?.errorCode, -32602)
    expectEqual(refused?.errorData?["member"]?.string, "ids")
  }

  @Test("the identities of a feed without such watches are forgotten when they are old or many")
  func idle() {
    let watcher = harness.connect()
    _ = harness.ask(watcher, "watch", #"{"feed":"list","ids":true}"#)
    harness.disconnect(watcher)
    let revision = harness.engine.catalog.revision
    _ = harness.ask(writer, "insert", #"{"feed":"list","elements":[{"id":1},{"id":2}]}"#)
    _ = harness.ask(writer, "remove", #"{"feed":"list","at":0}"#)
    func resume(_ revision: UInt64) -> String? {
      let again = harness.connect()
      defer { harness.disconnect(again) }
      let since = #""since":{"epoch":"test","revision":\#(revision)}"#
      let frames = harness.ask(again, "watch", #"{"feed":"list","ids":true,\#(since)}"#)
      return frames.last.flatMap { Value($0)?["params"]?["deletedIDs"]?.text }
    }
    expectEqual(resume(revision + 1), "[1]")
    expectEqual(resume(revision), "[]")
    harness.advance(seconds: 3000)
    _ = harness.ask(writer, "remove", #"{"feed":"list","at":0}"#)
    expectEqual(resume(revision + 2), "[2]")
    harness.advance(seconds: 3601)
    _ = harness.ask(writer, "insert", #"{"feed":"list","element":{"id":3}}"#)
    let later = harness.engine.catalog.revision
    _ = harness.ask(writer, "remove", #"{"feed":"list","at":0}"#)
    expectEqual(resume(later), "null")
  }

  /// Connections end also while feeds are half changed.
  @Test("the last watch may end while the identities follow a change of many rows")
  func watchEndsDuringAChange() throws {
    let harness = EngineHarness(slices: SlicedWork("slices", slice: 0, isEager: true))
    let writer = harness.connect()
    var watcher = harness.connect()
    _ = harness.ask(writer, "define", #"{"feed":"list","kind":"array","id":"$.id"}"#)
    _ = harness.ask(watcher, "watch", #"{"feed":"list","ids":true}"#)
    let channel = try harness.engine.catalog.feed(named: "list").watching?.others.first
    let identities = try require(channel?.identities)
    // The identities stop after each thousand rows, and a turn continues them twice before it closes connections.
    let elements = (0..<5100).map { #"{"id":\#($0)}"# }.joined(separator: ",")
    let params = #"{"feed":"list","elements":[\#(elements)]}"#
    harness.supply(writer, "update", params)
    for _ in 0..<200_000 where identities.isReady { harness.turnOnce() }
    expect(harness.isExclusive && !identities.isReady && !identities.isForgotten)
    harness.disconnect(watcher)
    expectEqual(harness.take(writer).first.flatMap { Value($0)?["result"]?["added"]?.items.count }, 5100)
    expect(identities.isForgotten)
    watcher = harness.connect()
    _ = harness.ask(watcher, "watch", #"{"feed":"list","ids":true,"initial":false}"#)
    _ = harness.ask(writer, "delete", #"{"feed":"list","id":7}"#)
    let told = harness.take(watcher).compactMap { Value($0)?["params"]?["deletedIDs"]?.text }
    expectEqual(told, ["[7]"])
  }
}
