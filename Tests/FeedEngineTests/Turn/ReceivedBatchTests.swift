import FeedModel
import FeedServer
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// Batches of another member of the log.
struct ReceivedBatchTests {
  private static func elements(_ ids: some Sequence<Int>, _ value: Int = 0) -> String {
    "[" + ids.map { #"{"id":\#($0),"k":\#(($0 * 7) % 9),"v":\#(value)}"# }.joined(separator: ",") + "]"
  }

  /// Requests with a first effect, without one, and with one that takes several turns.
  private static let requests: [(method: String, params: String)] = [
    ("define", #"{"feed":"c","kind":"collection"}"#),
    ("update", #"{"feed":"c","elements":\#(elements(0..<80))}"#),
    ("define", #"{"feed":"v","kind":"view","of":"c","filter":"@.k < 5","sort":[{"by":"$.k"}]}"#),
    ("update", #"{"feed":"absent","element":{"id":1}}"#),
    (
      "define",
      #"{"feed":"c","kind":"collection","bins":[{"name":"some","filter":"@.k > 0","sort":[{"by":"$.k"}]}],"replace":true}"#
    ),
    ("select", #"{"feed":"v","at":[[0,2]]}"#),
    ("define", #"{"feed":"list","kind":"array"}"#),
    // A text that is scanned in parts.
    ("set", #"{"feed":"list","elements":["\#(String(repeating: "x", count: 300_000))","b"]}"#),
    (
      "transaction",
      #"{"ops":[{"method":"update","params":{"feed":"c","elements":\#(elements(0..<60, 2))}},"#
        + #"{"method":"delete","params":{"feed":"c","where":"@.k < 3"}}]}"#
    ),
  ]

  private static func state(_ harness: EngineHarness, _ client: ConnectionID) -> [String] {
    ["c", "v", "list"].map { harness.ask(client, "verify", #"{"feed":"\#($0)"}"#).first ?? "" }
      + ["v"].map { harness.ask(client, "selected", #"{"feed":"\#($0)"}"#).first ?? "" }
  }

  @Test(arguments: [false, true]) func haveTheEffectThatTheyHadThere(isSliced: Bool) throws {
    let there = EngineHarness(isDurable: true)
    let writer = there.connect()
    for (method, params) in Self.requests { _ = there.ask(writer, method, params) }
    let here = EngineHarness(isDurable: true, slices: isSliced ? SlicedWork("slices", slice: 0, isEager: true) : nil)
    let reader = here.connect()
    var turns = 0
    for batch in there.log!.stored {
      here.log!.receive(batch)
      repeat {
        here.turnOnce()
        turns += 1
      } while here.isWithinBatch
    }
    expectEqual(Self.state(here, reader), Self.state(there, writer))
    expectEqual(here.abandonIfLost(), nil)
    expect(turns >= (isSliced ? 100 : there.log!.stored.count))
  }

  @Test func areExecutedBetweenOwnBatchesInTheOrderOfTheLog() throws {
    let there = EngineHarness(isDurable: true)
    let writer = there.connect()
    _ = there.ask(writer, "define", #"{"feed":"list","kind":"array"}"#)
    _ = there.ask(writer, "insert", #"{"feed":"list","elements":["theirs"]}"#)
    let here = EngineHarness(isDurable: true, slices: SlicedWork("slices", slice: 0, isEager: true))
    let client = here.connect()
    here.log!.isShared = true
    here.log!.receive(there.log!.stored[0])
    here.turn()
    here.log!.isHeld = true
    here.deliver(client, "insert", #"{"feed":"list","elements":["first"]}"#, id: 1)
    here.log!.receive(there.log!.stored[1])
    here.log!.store()
    here.turn()
    let answers = here.take(client).compactMap { Value($0) }
    expectEqual(answers.map { $0["id"]?.int }, [1])
    let snapshot = SlicedRequestTests.value(here.ask(client, "snapshot", #"{"feed":"list"}"#))
    expectEqual(snapshot?["result"]?["sections"]?.items.first?["elements"]?.text, #"["theirs","first"]"#)
  }

  /// The clock of this host may be ahead of that of the other one.
  @Test func areExecutedAtTheirMomentsAfterAConfigurationWasRead() throws {
    let there = EngineHarness(isDurable: true)
    let writer = there.connect()
    _ = there.ask(writer, "define", #"{"feed":"list","kind":"array","retain":{"seconds":600}}"#)
    _ = there.ask(writer, "insert", #"{"feed":"list","element":1}"#)
    let here = EngineHarness(isDurable: true)
    here.advance(seconds: 60)
    try here.configure("{}")
    for batch in there.log!.stored {
      here.log!.receive(batch)
      here.turn()
    }
    expect(there.engine.catalog.nextExpiry != nil)
    expectEqual(here.engine.catalog.nextExpiry, there.engine.catalog.nextExpiry)
  }

  @Test func damagedOnesLoseTheLog() {
    let harness = EngineHarness(isDurable: true)
    let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: 6, alignment: 1)
    defer { bytes.deallocate() }
    bytes.copyBytes(from: [0, 0, 1, 0, 1, 2])
    harness.log!.receive(
      LogBatch(
        number: 7, at: Instant(nanoseconds: 1), revision: nil, frames: UnsafeRawBufferPointer(bytes), owner: harness))
    harness.turn()
    expectEqual(
      harness.abandonIfLost(),
      "a batch of another member cannot be executed: its requests cannot be read from byte 0 on")
  }

  @Test func rowsOfAManagedFeedAreInTheLogOfAGroup() throws {
    var rows = ManagedRows()
    for (text, section) in [(#"{"id":1,"k":"a"}"#, "a"), (#"{"id":2,"k":"b"}"#, "b"), (#"{"id":3,"k":"a"}"#, "a")] {
      var text = text
      text.withUTF8 { rows.append(UnsafeRawBufferPointer($0), section: section) }
    }
    let there = EngineHarness(isDurable: true)
    let here = EngineHarness(isDurable: true, slices: SlicedWork("slices", slice: 0, isEager: true))
    for harness in [there, here] { harness.engine.catalog.keepsManagedRows = true }
    let managed = FeedDefinition(
      name: "m", content: .managed(ManagedDefinition(database: "/d", query: "q", section: "k")))
    let configuration = try Configuration(
      entries: [.init(definition: managed, place: .init(line: 1, column: 1, member: "feeds[0]"))],
      limits: [:], access: nil)
    try there.engine.configure(configuration, now: there.now)
    there.turn()
    expectEqual(there.engine.ownManagedFeeds.map(\.name), ["m"])
    there.engine.setManaged("m", rows, SourceStatus(.polling, message: "blind", since: "then"), now: there.now)
    there.turn()
    for batch in there.log!.stored {
      here.log!.receive(batch)
      here.turn()
    }
    let clients = (there.connect(), here.connect())
    let snapshots = [
      there.ask(clients.0, "snapshot", #"{"feed":"m"}"#), here.ask(clients.1, "snapshot", #"{"feed":"m"}"#),
    ]
    expectEqual(snapshots[0], snapshots[1])
    expectEqual(
      SlicedRequestTests.value(snapshots[1])?["result"]?["sections"]?.items.map { $0["elements"]?.text },
      [
        #"[{"id":1,"k":"a"},{"id":3,"k":"a"}]"#, #"[{"id":2,"k":"b"}]"#,
      ])
    let feeds = [there, here].compactMap { $0.engine.managedFeeds.first?.source }
    expectEqual(feeds, [SourceStatus(.polling, message: "blind", since: "then"), SourceStatus(.ok, since: "then")])
    expect(here.engine.ownManagedFeeds.isEmpty, "another host reads the database")
  }

  @Test func rowsOfTheHostThatReadsReplaceThoseThatAFormerOneStoresLater() throws {
    func rows(_ id: Int) -> ManagedRows {
      var (rows, text) = (ManagedRows(), #"{"id":\#(id)}"#)
      text.withUTF8 { rows.append(UnsafeRawBufferPointer($0)) }
      return rows
    }
    func elements(_ harness: EngineHarness) -> [String?] {
      let answer = SlicedRequestTests.value(harness.ask(harness.connect(), "snapshot", #"{"feed":"m"}"#))
      return answer?["result"]?["sections"]?.items.map { $0["elements"]?.text } ?? []
    }
    let managed = FeedDefinition(name: "m", content: .managed(ManagedDefinition(database: "/d", query: "q")))
    let configuration = try Configuration(
      entries: [.init(definition: managed, place: .init(line: 1, column: 1, member: "feeds[0]"))],
      limits: [:], access: nil)
    let (former, next) = (EngineHarness(isDurable: true), EngineHarness(isDurable: true))
    for harness in [former, next] {
      harness.engine.catalog.keepsManagedRows = true
      try harness.engine.configure(configuration, now: harness.now)
      harness.turn()
    }
    let status = SourceStatus(.ok, since: "then")
    next.engine.setManaged("m", rows(2), status, now: next.now)
    next.turn()
    expect(next.engine.keepManaged("m", status), "the feed has the rows of the database")
    former.engine.setManaged("m", rows(1), status, now: former.now)
    former.turn()
    next.log!.receive(try require(former.log!.stored.last))
    next.turn()
    expectEqual(elements(next), [#"[{"id":1}]"#])
    expect(!next.engine.keepManaged("m", status), "the database must be read again")
    next.engine.setManaged("m", rows(2), status, now: next.now)
    next.turn()
    expectEqual(elements(next), [#"[{"id":2}]"#])
    expect(next.engine.keepManaged("m", status))
  }

  @Test func rowsThatCouldNotBeStoredAreForgottenIfAnotherHostReadsTheDatabase() {
    var queue = ManagedQueue()
    queue.proposed = ["kept", "passed on"]
    for feed in ["kept", "passed on"] {
      let isTaken = queue.put(ManagedRows(), for: feed, status: SourceStatus(.ok, since: "then"))
      expect(isTaken)
      let rows = queue.takeForLog(feed)
      _ = queue.didFail(feed, rows)
    }
    queue.proposed = ["kept"]
    expectEqual(queue.takeFailed(), ["kept"])
    queue.proposed = ["kept", "passed on"]
    expectEqual(queue.takeFailed(), [])
  }
}
