import FeedModel
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

@Suite("Applying a configuration")
struct ConfigureTests {
  private static let people =
    #"{"feed": "people", "kind": "managed", "database": "d", "query": "SELECT id FROM p", "section": "s"}"#

  private func rows(_ count: Int) -> ManagedRows {
    var rows = ManagedRows()
    for id in 0..<count { Array(#"{"id":\#(id),"s":"a"}"#.utf8).withUnsafeBytes { rows.append($0, section: "a") } }
    return rows
  }

  @Test func clientsCannotDefineOrChangeManagedFeeds() throws {
    let harness = EngineHarness()
    let client = harness.connect()
    let definition = #"{"feed":"people","kind":"managed","database":"d","query":"SELECT 1 AS id"}"#
    expectEqual(harness.ask(client, "define", definition).first?.json?.errorCode, -32006)
    let operations = #"{"ops":[{"method":"define","params":\#(definition)}]}"#
    expectEqual(harness.ask(client, "transaction", operations).first?.json?.errorCode, -32006)
    try harness.configure(#"{"feeds": [\#(Self.people)]}"#)
    expectEqual(harness.ask(client, "undefine", #"{"feed":"people"}"#).first?.json?.errorCode, -32006)
    expectEqual(harness.ask(client, "set", #"{"feed":"people","elements":[]}"#).first?.json?.errorCode, -32002)
  }

  @Test func watchersReceiveManagedRowsAndDescribeReportsTheSource() throws {
    let harness = EngineHarness()
    try harness.configure(#"{"feeds": [\#(Self.people), {"feed":"home","kind":"composed","children":["people"]}]}"#)
    let client = harness.connect()
    _ = harness.ask(client, "watch", #"{"feed":"home"}"#)
    harness.engine.setManaged("people", rows(2), SourceStatus(.ok, since: "T1"), now: harness.now)
    harness.turn()
    let delta = harness.take(client).first?.json?["params"]
    expectEqual(delta?["sections"]?.text, #"{"deleted":[],"added":[{"at":0,"name":"people/a","key":"a"}]}"#)
    expectEqual(delta?["elements"]?.items.map { $0["id"]?.int }, [0, 1])
    func source() -> Value? {
      harness.ask(client, "describe", #"{"feed":"people"}"#).first?.json?["result"]?["source"]
    }
    expectEqual(source()?.text, #"{"status":"ok","since":"T1"}"#)
    harness.engine.setSource("people", SourceStatus(.error, message: "gone", since: "T2"))
    harness.engine.setSource("people", SourceStatus(.error, message: "gone", since: "T3"))
    expectEqual(source()?.text, #"{"status":"error","error":"gone","reason":"gone","since":"T2"}"#)
    expectEqual(harness.ask(client, "get", #"{"feed":"people","id":1}"#).first?.json?["result"]?["at"]?.text, "[[0,1]]")
    expect(harness.events.contains { $0.message.contains("managed feed people: gone") })
  }

  @Test("rows that were read before an error do not hide it when the log has them", arguments: [false, true])
  func errorWhileRowsWait(keepsRows: Bool) throws {
    let harness = EngineHarness(isDurable: true)
    harness.engine.catalog.keepsManagedRows = keepsRows
    try harness.configure(#"{"feeds": [\#(Self.people)]}"#)
    harness.log?.isHeld = true
    harness.engine.setManaged("people", rows(2), SourceStatus(.ok, since: "T1"), now: harness.now)
    harness.turn()
    harness.engine.failManaged("people", SourceStatus(.error, message: "gone", since: "T2"))
    harness.log?.isHeld = false
    harness.log?.store()
    harness.turn()
    harness.turn()
    let described = harness.ask(harness.connect(), "describe", #"{"feed":"people"}"#).first?.json?["result"]
    expectEqual(described?["count"]?.int, 2)
    expectEqual(described?["source"]?.text, #"{"status":"error","error":"gone","reason":"gone","since":"T2"}"#)
  }

  @Test func reloadingAppliesOnlyTheDifferences() throws {
    let harness = EngineHarness()
    let list = #"{"feed": "list", "kind": "array"}"#
    let first = try harness.configure(#"{"feeds": [\#(list), \#(Self.people)]}"#)
    expectEqual(first.defined, ["list", "people"])
    let client = harness.connect()
    _ = harness.ask(client, "insert", #"{"feed":"list","elements":[{"k":"x"}]}"#)
    try expectEqual(harness.configure(#"{"feeds": [\#(list), \#(Self.people)]}"#), ConfigurationChanges())
    let typed = #"{"feed": "list", "kind": "array", "type": "$.k"}"#
    let second = try harness.configure(#"{"feeds": [\#(typed)]}"#)
    expect(second.redefined == ["list"] && second.undefined == ["people"])
    expectEqual(harness.ask(client, "get", #"{"feed":"list","at":[0,0]}"#).first?.json?["result"]?["type"]?.string, "x")
    expectEqual(second.left, [])
  }

  /// A feed that is removed from the file stays defined, and the log reports it once.
  @Test func feedRemovedFromTheFileStaysDefined() throws {
    let harness = EngineHarness()
    let (list, other) = (#"{"feed": "list", "kind": "array"}"#, #"{"feed": "other", "kind": "array"}"#)
    try harness.configure(#"{"feeds": [\#(list), \#(other), \#(Self.people)]}"#)
    let client = harness.connect()
    _ = harness.ask(client, "undefine", #"{"feed":"other"}"#)
    let changes = try harness.configure("{}")
    expect(changes.left == ["list"] && changes.undefined == ["people"])
    expectEqual(
      changes.text, "undefined people; kept list, which the file no longer defines; undefine what is not needed")
    expect(harness.engine.catalog.feeds["list"] != nil)
    try expectEqual(harness.configure("{}"), ConfigurationChanges())
    try harness.configure(#"{"feeds": [\#(list)]}"#)
    try expectEqual(
      harness.configure("{}").text, "kept list, which the file no longer defines; undefine what is not needed")
  }

  @Test("a configuration that could not be stored is applied when it is read again")
  func notStored() throws {
    let harness = EngineHarness(isDurable: true)
    let client = harness.connect()
    func file(_ least: Int, _ more: String = "") -> String {
      #"{"feeds": [{"feed": "c", "bins": [{"name": "b", "filter": "@.p >= \#(least)"}]}]\#(more)}"#
    }
    func filter() -> String? {
      harness.ask(client, "describe", #"{"feed":"c"}"#).first?.json?["result"]?["bins"]?.items.first?["filter"]?.string
    }
    try harness.configure(file(8))
    expectEqual(filter(), "@.p >= 8")
    harness.log?.failure = "the disk is full"
    let rules = #", "access": [{"allow": "read"}]"#
    let failed = try harness.engine.configure(Configuration(text: file(5, rules)), now: harness.now)
    harness.engine.report(ConfigurationReport(file: "f", time: "t", changes: failed))
    harness.turn()
    expectEqual(filter(), "@.p >= 8")
    let operators = harness.connect(uid: 0)
    let report = harness.ask(operators, "stats").first?.json?["result"]?["configuration"]
    expectEqual(
      report?["text"]?.string,
      "the configuration could not be stored and is not applied: the disk is full; only the access rules were replaced")
    expect(report?["redefined"]?.text == "[]" && report?["access"]?.text == "true")
    harness.log?.failure = nil
    try expectEqual(harness.configure(file(5, rules)).redefined, ["c"])
    expectEqual(filter(), "@.p >= 5")
  }

  @Test("if the first configuration is refused, the feeds that it defines as they are stay in effect")
  func firstIsRefused() throws {
    let harness = EngineHarness(isDurable: true)
    harness.engine.catalog.keepsManagedRows = true
    let (a, c) = (#"{"feed": "a", "kind": "array"}"#, #"{"feed": "c", "kind": "array"}"#)
    let client = harness.connect()
    for definition in [a, #"{"feed": "c", "kind": "collection"}"#] { _ = harness.ask(client, "define", definition) }
    let file = #"{"feeds": [\#(a), \#(c)]}"#
    let configuration = try Configuration(text: file)
    #expect(throws: ConfigurationError.self) { try harness.engine.configure(configuration, now: harness.now) }
    harness.engine.keepGivenFeeds(of: configuration)
    expectEqual(harness.engine.configuredDefinitions.map(\.name), ["a"])
    // What a client changes from now on stays, as after a configuration that was applied.
    _ = harness.ask(client, "define", #"{"feed":"a","kind":"array","id":"$.id","replace":true}"#)
    _ = harness.ask(client, "undefine", #"{"feed":"c"}"#)
    let changes = try harness.configure(file)
    expect(changes.defined == ["c"] && changes.redefined == [], "\(changes)")
    harness.engine.keepGivenFeeds(of: try Configuration(text: "{}"))
    expectEqual(harness.engine.configuredDefinitions.count, 2)
    try expectEqual(harness.configure(#"{"feeds": [\#(c)]}"#).left, ["a"])
  }

  @Test("a configuration that is read while another one waits for the log decides")
  func readWhileAnotherWaits() throws {
    let harness = EngineHarness(isDurable: true)
    func file(_ type: String) -> String { #"{"feeds": [{"feed": "a", "kind": "array", "type": "\#(type)"}]}"# }
    try harness.configure(file("$.x"))
    harness.log?.isHeld = true
    try harness.configure(file("$.y"))
    try expectEqual(harness.configure(file("$.x")).redefined, ["a"])
    harness.log?.isHeld = false
    harness.log?.store()
    harness.turn()
    harness.turn()
    let client = harness.connect()
    expectEqual(harness.ask(client, "describe", #"{"feed":"a"}"#).first?.json?["result"]?["type"]?.string, "$.x")
  }

  @Test("a managed feed that leaves the file is undefined once, also if the file is read again before the log has this")
  func undefinedWhileAnotherWaits() throws {
    let harness = EngineHarness(isDurable: true)
    try harness.configure(#"{"feeds": [\#(Self.people)]}"#)
    harness.log?.isHeld = true
    let file = #"{"feeds": [{"feed": "list", "kind": "array"}]}"#
    try expectEqual(harness.configure(file).undefined, ["people"])
    try expectEqual(harness.configure(file).undefined, [])
    harness.log?.isHeld = false
    harness.log?.store()
    harness.turn()
    harness.turn()
    expect(harness.engine.catalog.feeds["people"] == nil && harness.engine.catalog.feeds["list"] != nil)
    expectEqual(harness.engine.failedConfigurations, 0)
  }

  @Test("a managed feed that leaves the file stays if another member of the group configures it")
  func keptForAnotherMember() throws {
    let harness = EngineHarness(isDurable: true)
    harness.engine.catalog.keepsManagedRows = true
    let empty = try Configuration(text: "{}")
    for (others, isKept) in [(Set(["people"]), true), (["other"], false)] {
      try harness.configure(#"{"feeds": [\#(Self.people)]}"#)
      let changes = try harness.engine.configure(empty, keeping: others, now: harness.now)
      harness.turn()
      expectEqual(changes.undefined, isKept ? [] : ["people"])
      expectEqual(changes.left, isKept ? ["people"] : [])
      expectEqual(harness.engine.catalog.feeds["people"] != nil, isKept)
    }
  }

  @Test("a managed feed that left the file while its host was stopped is undefined by the next start")
  func leftBeforeAStart() throws {
    for (former, others, isKept) in [
      (Set(["people"]), Set<String>(), false), (["people"], ["people"], true), ([], [], true),
    ] {
      let harness = EngineHarness(isDurable: true)
      harness.engine.catalog.keepsManagedRows = true
      let there = EngineHarness(isDurable: true)
      try there.configure(#"{"feeds": [\#(Self.people)]}"#)
      for batch in there.log!.stored {
        harness.log!.receive(batch)
        harness.turn()
      }
      harness.engine.useFormerFeeds(former)
      // A first file that is refused changes nothing.
      try harness.engine.keepGivenFeeds(of: Configuration(text: #"{"feeds": [{"feed": "people"}]}"#))
      let empty = try Configuration(text: "{}")
      let changes = try harness.engine.configure(empty, keeping: others, now: harness.now)
      harness.turn()
      expectEqual(changes.undefined, isKept ? [] : ["people"])
      expectEqual(harness.engine.catalog.feeds["people"] != nil, isKept)
      // Later, another member may have defined it.
      try harness.configure(#"{"feeds": [\#(Self.people)]}"#)
      let again = try harness.engine.configure(empty, keeping: ["people"], now: harness.now)
      expectEqual(again.undefined, [])
      try expectEqual(harness.engine.configure(empty, now: harness.now).undefined, [])
    }
  }

  @Test("a start does not report that a configuration of its log could not be applied: another host may have read it")
  func failedInReplay() throws {
    let (there, here) = (EngineHarness(isDurable: true), EngineHarness(isDurable: true))
    there.log?.isHeld = true
    let client = there.connect()
    there.deliver(client, "define", #"{"feed":"a","kind":"collection"}"#)
    try there.configure(#"{"feeds": [{"feed": "a", "kind": "array"}]}"#)
    there.log?.isHeld = false
    there.log?.store()
    for _ in 0..<3 { there.turn() }
    for batch in there.stored { try here.engine.replay(batch) }
    func failures(_ harness: EngineHarness) -> Int {
      harness.events.count { $0.message.contains("the configuration could not be applied") }
    }
    expectEqual([there, here].map(failures), [1, 0])
    expectEqual(here.engine.catalog.revision, there.engine.catalog.revision)
  }

  @Test("a report tells what became of the last configuration, not of one before it that could not be stored")
  func reportOfTheLastConfiguration() throws {
    let harness = EngineHarness(isDurable: true)
    func file(_ name: String) -> String { #"{"feeds": [{"feed": "\#(name)", "kind": "array"}]}"# }
    harness.log?.isHeld = true
    try harness.configure(file("a"))
    let changes = try harness.configure(file("b"))
    harness.engine.report(ConfigurationReport(file: "f", time: "t", changes: changes))
    harness.log?.isHeld = false
    harness.log?.fail("the disk is full")
    harness.turn()
    harness.turn()
    let report = harness.ask(harness.connect(uid: 0), "stats").first?.json?["result"]?["configuration"]
    expectEqual(report?["status"]?.string, "applied")
    expectEqual(report?["defined"]?.text, #"["b"]"#)
  }

  @Test("feeds that wait for the log of a group are not in effect, and are no other reading when they are")
  func waitingFeeds() throws {
    let harness = EngineHarness(isDurable: true)
    let operators = harness.connect(uid: 0)
    func report() -> Value? { harness.ask(operators, "stats").first?.json?["result"]?["configuration"] }
    let access = ConfigurationChanges(access: true)
    harness.engine.report(ConfigurationReport(file: "f", time: "t", changes: access, feedsWait: true))
    expectEqual(report()?["status"]?.string, "storing")
    expectEqual(report()?["text"]?.string, "replaced the access rules; the feeds wait for the log of the group")
    harness.engine.report(ConfigurationReport(file: "f", time: "t", changes: access), isOfLastReading: true)
    expect(report()?["status"]?.string == "applied" && report()?["reads"]?.int == 1)
  }

  @Test("the ranges of character classes in filters are bounded for clients only", arguments: [false, true])
  func ranges(isDurable: Bool) throws {
    let harness = EngineHarness(isDurable: isDurable)
    let classes = String(repeating: #"\\\\p{L}"#, count: 200)
    let bins = #""bins": [{"name": "b", "filter": "match(@.a, '[\#(classes)]')"}]"#
    try expectEqual(harness.configure(#"{"feeds": [{"feed": "c", \#(bins)}]}"#).defined, ["c"])
    let client = harness.connect()
    let described = harness.ask(client, "describe", #"{"feed":"c"}"#).first?.json?["result"]
    expectEqual(described?["bins"]?.items.count, 1)
    let refused = harness.ask(client, "define", #"{"feed":"d","kind":"collection",\#(bins)}"#).first?.json
    expectEqual(refused?.errorCode, -32004)
  }

  @Test("of a configuration that could not be stored, the feeds that have its definitions are in use")
  func feedsInUse() throws {
    let harness = EngineHarness(isDurable: true)
    let client = harness.connect()
    _ = harness.ask(client, "define", #"{"feed":"a","kind":"array"}"#)
    harness.log?.failure = "the disk is full"
    try harness.configure(#"{"feeds": [{"feed": "a", "kind": "array"}, {"feed": "b", "kind": "array"}]}"#)
    expectEqual(harness.engine.failedConfigurations, 1)
    expectEqual(harness.engine.configuredDefinitions.map(\.name), ["a"])
  }

  @Test("rows that could not be stored do not replace newer ones that are in flight")
  func rowsOlderThanThoseInFlight() {
    var queue = ManagedQueue()
    var proposed: [ProposedRows?] = []
    for count in 1...2 {
      let mustSubmit = queue.put(rows(count), for: "f", status: SourceStatus(.ok, since: "T\(count)"))
      expect(mustSubmit)
      proposed.append(queue.takeForLog("f"))
    }
    expectEqual(queue.didFail("f", proposed[0]), "T2")
    expectEqual(queue.takeFailed(), [])
    expectEqual(queue.didFail("f", proposed[1]), "T2")
    expectEqual(queue.takeFailed(), ["f"])
    expectEqual(queue.takeForLog("f"), proposed[1])
  }

  @Test("a file is applied in an order that the limits allow, whatever the order of its definitions")
  func feedsThatShowMoreAndLess() throws {
    let harness = EngineHarness()
    // "top" may show "a" in 64 places, and never shows it in more than 41.
    func file(_ first: Int, _ second: Int) -> String {
      let middle = (0..<40).map { #"{"feed": "m\#($0)", "kind": "composed", "children": ["a"]}"# }
      func parent(_ name: String, _ count: Int) -> String {
        let children = (0..<count).map { #""m\#($0)""# }.joined(separator: ",")
        return #"{"feed": "\#(name)", "kind": "composed", "children": [\#(children)]}"#
      }
      let top = #"{"feed": "top", "kind": "composed", "children": ["one", "two"]}"#
      let feeds = [#"{"feed": "a", "kind": "array"}"#] + middle + [parent("one", first), parent("two", second), top]
      return #"{"feeds": [\#(feeds.joined(separator: ","))]}"#
    }
    try harness.configure(file(1, 40))
    try expectEqual(harness.configure(file(40, 1)).redefined, ["one", "two"])
    try expectEqual(harness.configure(file(1, 40)).redefined, ["one", "two"])
    expectEqual(harness.engine.catalog.feeds["one"]?.sectionCount, 1)
    expectEqual(harness.engine.catalog.feeds["two"]?.sectionCount, 40)
    let revision = harness.engine.catalog.revision
    let error = #expect(throws: ConfigurationError.self) { try harness.configure(file(33, 40)) }
    expectEqual(error?.place.member, "feeds[41]")
    expectEqual(harness.engine.catalog.revision, revision)
  }

  @Test("a start keeps what clients changed since the file got the definition that a feed had already")
  func givenAgain() throws {
    let harness = EngineHarness(isDurable: true)
    func file(_ current: Int) -> String {
      #"{"feeds": [{"feed": "a", "kind": "array"}, {"feed": "b", "kind": "array"}, "#
        + #"{"feed": "tabs", "kind": "segmented", "children": ["a", "b"], "current": \#(current)}]}"#
    }
    try harness.configure(file(0))
    let client = harness.connect()
    _ = harness.ask(client, "activate", #"{"feed":"tabs","child":1}"#)
    let revision = harness.engine.catalog.revision
    try expectEqual(harness.configure(file(1)).redefined, ["tabs"])
    expectEqual(harness.engine.catalog.revision, revision)
    _ = harness.ask(client, "activate", #"{"feed":"tabs","child":0}"#)
    let next = EngineHarness(isDurable: true)
    for batch in harness.stored { try next.engine.replay(batch) }
    try expectEqual(next.configure(file(1)), ConfigurationChanges())
    expectEqual(next.engine.catalog.feeds["tabs"]?.definition, harness.engine.catalog.feeds["tabs"]?.definition)
  }

  @Test("replay defines the feeds of a file that was read by higher limits than those of its log")
  func readByHigherLimits() throws {
    let bins = (0..<6).map { #"{"name": "b\#($0)", "filter": "@.x == \#($0)"}"# }.joined(separator: ", ")
    let harness = EngineHarness(isDurable: true)
    try harness.configure(#"{"feeds": [{"feed": "k", "bins": [\#(bins)]}]}"#)
    let next = EngineHarness(isDurable: true) { ($0.maxBins, $0.maxFilterBytes) = (4, 100) }
    for batch in harness.stored { try next.engine.replay(batch) }
    expectEqual(next.engine.catalog.feeds["k"]?.definition, harness.engine.catalog.feeds["k"]?.definition)
    expectEqual(next.engine.catalog.revision, harness.engine.catalog.revision)
  }

  @Test("while the log cannot store that there are new rows, the source has an error")
  func rowsThatCannotBeStored() throws {
    let harness = EngineHarness(isDurable: true)
    try harness.configure(#"{"feeds": [\#(Self.people)]}"#)
    let client = harness.connect()
    func describe() -> Value? { harness.ask(client, "describe", #"{"feed":"people"}"#).first?.json?["result"] }
    harness.engine.setManaged("people", rows(1), SourceStatus(.ok, since: "T1"), now: harness.now)
    harness.turn()
    expectEqual(describe()?["source"]?.text, #"{"status":"ok","since":"T1"}"#)
    harness.log?.failure = "the disk is full"
    harness.engine.setManaged("people", rows(2), SourceStatus(.ok, since: "T2"), now: harness.now)
    harness.turn()
    let reason = "the database has new rows, which cannot be stored: the disk is full"
    expectEqual(
      describe()?["source"]?.text, #"{"status":"error","error":"\#(reason)","reason":"\#(reason)","since":"T2"}"#)
    expectEqual(describe()?["count"]?.int, 1)
    harness.log?.failure = nil
    harness.advance(seconds: 2)
    harness.turn()
    expectEqual(describe()?["source"]?.text, #"{"status":"ok","since":"T2"}"#)
    expectEqual(describe()?["count"]?.int, 2)
  }

  @Test func refusedConfigurationChangesNothing() throws {
    let harness = EngineHarness()
    try harness.configure(#"{"feeds": [\#(Self.people), {"feed": "list", "kind": "array"}]}"#)
    let client = harness.connect()
    _ = harness.ask(client, "define", #"{"feed":"home","kind":"composed","children":["people"]}"#)
    let revision = harness.engine.catalog.revision
    for (text, expected) in [
      (#"{"feeds": [{"feed": "new", "kind": "array"}]}"#, #"cannot undefine managed feed "people""#),
      (
        #"{"feeds": [{"feed": "n", "kind": "array"}, {"feed": "list", "kind": "single"}]}"#,
        "1:44: feeds[1]: its kind is array"
      ),
      (
        #"{"feeds": [{"feed": "people", "kind": "single"}, {"feed": "list", "kind": "array"}]}"#,
        "its kind is managed; let feedd read its file again without it before you define it as single"
      ),
      (
        #"{"feeds": [{"feed": "c", "kind": "composed", "children": ["none"]}]}"#,
        #"feeds[0]: shows "none", which neither"#
      ),
    ] {
      let error = #expect(throws: ConfigurationError.self) { try harness.configure(text) }
      expectEqual(error?.description.contains(expected), true, "\(error?.description ?? "")")
    }
    expectEqual(harness.engine.catalog.revision, revision)
    expectEqual(harness.engine.catalog.feeds.count, 3)
  }
}
