import FeedModel
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

@Suite("Access rules")
struct AccessTests {
  private let harness = EngineHarness()

  private static let rules = """
    {"feeds": [{"feed": "inbox", "kind": "collection", "bins": [{"name": "urgent"}]}, {"feed": "secret", "kind": "array"}],
     "access": [{"feeds": "inbox", "allow": "read"},
                {"user": "ann", "feeds": ["inbox", "mine-?"], "allow": ["write", "define", "read"]},
                {"group": "staff", "allow": ["admin"]}]}
    """

  private func isAllowed(_ harness: EngineHarness, _ uid: UInt32, _ method: String, _ params: String) -> Bool {
    let client = harness.connect(uid: uid)
    let answer = harness.ask(client, method, params).first ?? ""
    return answer.json?.errorCode != -32006
  }

  @Test(
    arguments: [
      (2000, "get", #"{"feed":"inbox","at":[0,0]}"#, true), (2000, "watch", #"{"feed":"inbox/urgent"}"#, true),
      (2000, "get", #"{"feed":"secret","at":[0,0]}"#, false), (2000, "watch", #"{"feed":"secret"}"#, false),
      (2000, "update", #"{"feed":"inbox","element":{"id":1}}"#, false), (2000, "stats", "{}", false),
      (2000, "hello", "{}", true), (2000, "feeds", "{}", true),
      (1001, "update", #"{"feed":"inbox","element":{"id":1}}"#, true),
      (1001, "insert", #"{"feed":"secret","elements":[1]}"#, false),
      (1001, "define", #"{"feed":"mine-1","kind":"array"}"#, true),
      (1001, "define", #"{"feed":"mine-12","kind":"array"}"#, false),
      (1001, "define", #"{"feed":"mine-1","kind":"composed","children":["secret"]}"#, false),
      (1001, "define", #"{"feed":"mine-1","kind":"composed","children":["inbox/urgent"]}"#, true),
      (1001, "define", #"{"feed":"mine-1","kind":"slots","contents":{"A":"secret"},"pattern":["A"]}"#, false),
      (1001, "transaction", #"{"ops":[{"method":"insert","params":{"feed":"secret","elements":[1]}}]}"#, false),
      (1002, "stats", "{}", true), (50, "clients", "{}", true),
      (0, "insert", #"{"feed":"secret","elements":[1]}"#, true),
    ] as [(UInt32, String, String, Bool)])
  func rulesAllowOrRefuseEachMethod(uid: UInt32, method: String, params: String, allowed: Bool) throws {
    try harness.configure(Self.rules)
    expectEqual(isAllowed(harness, uid, method, params), allowed)
  }

  @Test func refusedOperationsAreNamed() throws {
    try harness.configure(Self.rules)
    let insert = #"{"method":"insert","params":{"feed":"secret","elements":[1]}}"#
    let answer = harness.ask(harness.connect(uid: 1001), "transaction", #"{"ops":[\#(insert)]}"#).first?.json
    expectEqual(answer?.errorCode, -32006)
    expectEqual(answer?.errorData?.text, #"{"op":0,"feed":"secret"}"#)
    let conditions = #""if":{"feed":"secret","revision":1}"#
    for params in [
      #"{"ops":[],\#(conditions)}"#, #"{"ops":[{"method":"update","params":{"feed":"inbox",\#(conditions)}}]}"#,
    ] {
      let answer = harness.ask(harness.connect(uid: 1001), "transaction", params).first?.json
      expect(answer?.errorCode == -32006 && answer?.errorData?["feed"]?.string == "secret", "\(params)")
    }
  }

  /// A rule matches any group of the process, not only its first.
  @Test(arguments: [([], false), ([7], false), ([50], true), ([7, 50, 8], true)] as [([UInt32], Bool)])
  func rulesMatchSupplementaryGroups(groups: [UInt32], allowed: Bool) throws {
    for rule in [#"{"group": "staff", "allow": "admin"}"#, #"{"gid": [50, 51], "allow": "admin"}"#] {
      let harness = EngineHarness()
      try harness.configure(#"{"access": [\#(rule)]}"#)
      let answer = harness.ask(harness.connect(uid: 2000, groups: groups), "stats").first ?? ""
      expect((answer.json?.errorCode == -32006) != allowed, "\(rule)")
    }
  }

  @Test func feedsListsReadableFeedsOnly() throws {
    try harness.configure(Self.rules)
    let answer = harness.ask(harness.connect(uid: 2000), "feeds").first?.json
    expectEqual(answer?["result"]?["feeds"]?.items.map { $0["feed"]?.string }, ["inbox"])
  }

  @Test func everythingIsAllowedWithoutRules() throws {
    try harness.configure(#"{"feeds": [{"feed": "secret", "kind": "array"}]}"#)
    expect(isAllowed(harness, 2000, "insert", #"{"feed":"secret","elements":[1]}"#))
    try harness.configure(#"{"access": []}"#)
    expect(!isAllowed(harness, 2000, "insert", #"{"feed":"secret","elements":[1]}"#))
  }

  @Test func watcherIsDisconnectedWhenItLosesReadAccess() throws {
    try harness.configure(#"{"feeds": [{"feed": "secret", "kind": "array"}]}"#)
    let (client, root) = (harness.connect(uid: 2000), harness.connect(uid: 0))
    for connection in [client, root] { _ = harness.ask(connection, "watch", #"{"feed":"secret"}"#) }
    try harness.configure(#"{"access": []}"#)
    expectEqual(harness.take(client).last?.json?["params"]?["reason"]?.string, "access")
    expect(harness.take(root).isEmpty)
  }

  private static let shownRules = """
    {"feeds": [{"feed": "inbox", "kind": "array"}, {"feed": "secret", "kind": "array"},
               {"feed": "mix", "kind": "composed", "children": ["inbox", "secret"]},
               {"feed": "over", "kind": "composed", "children": ["mix"]},
               {"feed": "home", "kind": "composed", "children": ["inbox"]}],
     "access": [{"uid": 2000, "feeds": ["inbox", "mix", "over", "home"], "allow": "read"}]}
    """

  /// Reading a provider requires the right to read every feed that it shows.
  @Test func readingAProviderRequiresReadingItsChildren() throws {
    try harness.configure(Self.shownRules)
    for feed in ["mix", "over"] {
      for method in ["watch", "snapshot", "describe", "verify", "selected"] {
        expect(!isAllowed(harness, 2000, method, #"{"feed":"\#(feed)"}"#), "\(method) \(feed)")
      }
    }
    for feed in ["inbox", "home"] { expect(isAllowed(harness, 2000, "watch", #"{"feed":"\#(feed)"}"#)) }
    let answer = harness.ask(harness.connect(uid: 2000), "feeds").first?.json
    expectEqual(answer?["result"]?["feeds"]?.items.map { $0["feed"]?.string }, ["home", "inbox"])
  }

  private static let hidingFeeds = [
    #"{"feed":"other","kind":"array"}"#, #"{"feed":"days","kind":"collection","section":"$.day"}"#,
    #"{"feed":"mail","kind":"collection","bins":[{"name":"new"},{"name":"old"}]}"#,
    #"{"feed":"mix","kind":"composed","children":["other"]}"#,
    #"{"feed":"vault","kind":"composed","children":["days","mail/old","mix"]}"#,
    #"{"feed":"vault-row","kind":"array","selectable":false}"#,
    #"{"feed":"shelf","kind":"composed","children":["vault-row"]}"#,
  ]

  private static let hidingRules = """
    {"access": [{"uid": 2000, "feeds": ["other", "days", "mail", "mix", "shelf"], "allow": ["read", "write", "define"]},
                {"uid": 3000, "allow": ["read", "write", "define"]}]}
    """

  /// Requests that fail because of a feed that the request does not name, and whose name begins with "vault".
  private static let hidingRequests = [
    ("define", #"{"feed":"mail","kind":"collection","bins":[{"name":"new"}],"replace":true}"#, -32001),
    ("update", #"{"feed":"days","elements":[{"id":1,"day":1},{"id":2,"day":2}]}"#, -32007),
    ("insertChild", #"{"feed":"mix","child":"days"}"#, -32007),
    ("transaction", #"{"ops":[{"method":"insertChild","params":{"feed":"mix","child":"days"}}]}"#, -32007),
    ("select", #"{"feed":"shelf","at":[0,0]}"#, -32006),
    ("watch", #"{"feed":"shelf"}"#, -32006),
  ]

  /// An error names no feed that the client may not read, unless the request names it.
  @Test(arguments: hidingRequests)
  func errorsDoNotNameHiddenFeeds(method: String, params: String, code: Int) throws {
    let harness = EngineHarness { $0.maxSections = 3 }
    let root = harness.connect(uid: 0)
    for feed in Self.hidingFeeds { expect(harness.ask(root, "define", feed).first?.json?["result"] != nil) }
    try harness.configure(Self.hidingRules)
    _ = harness.ask(root, "insert", #"{"feed":"vault-row","elements":["x"]}"#)
    _ = harness.ask(root, "update", #"{"feed":"days","element":{"id":0,"day":0}}"#)
    let hidden = harness.ask(harness.connect(uid: 2000), method, params).first ?? ""
    expectEqual(hidden.json?.errorCode, code, "\(hidden)")
    expect(!hidden.contains("vault"), "\(hidden)")
    if method == "watch" { return }
    for uid in [0, 3000] as [UInt32] {
      let named = harness.ask(harness.connect(uid: uid), method, params).first ?? ""
      expect(named.json?.errorCode == code && named.contains("vault"), "\(named)")
    }
  }

  /// Undefining a feed that a hidden feed shows tells neither its name nor what else it shows.
  @Test func undefineDoesNotNameAHiddenParent() throws {
    let root = harness.connect(uid: 0)
    _ = harness.ask(root, "define", #"{"feed":"inbox","kind":"array"}"#)
    _ = harness.ask(root, "define", #"{"feed":"vault","kind":"composed","children":["inbox"]}"#)
    try harness.configure(#"{"access": [{"uid": 2000, "feeds": "inbox", "allow": ["read", "define"]}]}"#)
    let undefine = #"{"feed":"inbox"}"#
    let answer = harness.ask(harness.connect(uid: 2000), "undefine", undefine).first?.json?["error"]?["message"]?.string
    expectEqual(
      answer, "cannot change feed \"inbox\": another feed shows it; remove it there or undefine that feed first")
    let named = harness.ask(root, "undefine", undefine).first?.json?["error"]?["message"]?.string
    expectEqual(named, "cannot change feed \"inbox\": \"vault\" shows it; remove it there or undefine that feed first")
  }

  /// The answer to a change names the sections that come only if the client may read the feed with all that it shows.
  @Test(arguments: [(2000, ["", ""]), (0, ["vault/new", "vault/old"])] as [(UInt32, [String])])
  func answersDoNotNameSectionsOfHiddenFeeds(uid: UInt32, names: [String]) throws {
    for isTransaction in [false, true] {
      let harness = EngineHarness()
      let root = harness.connect(uid: 0)
      for feed in [
        #"{"feed":"list","kind":"array"}"#,
        #"{"feed":"vault","kind":"collection","bins":[{"name":"new"},{"name":"old"}]}"#,
        #"{"feed":"tabs","kind":"segmented","children":["list","vault"]}"#,
      ] { _ = harness.ask(root, "define", feed) }
      try harness.configure(#"{"access": [{"uid": 2000, "feeds": ["list", "tabs"], "allow": ["read", "define"]}]}"#)
      let remove = #"{"feed":"tabs","child":"list"}"#
      let client = harness.connect(uid: uid)
      let answer =
        isTransaction
        ? harness.ask(client, "transaction", #"{"ops":[{"method":"removeChild","params":\#(remove)}]}"#)
        : harness.ask(client, "removeChild", remove)
      let result = answer.first?.json?["result"]
      let change = isTransaction ? result?["results"]?.items.first : result
      expectEqual(change?["sections"]?["added"]?.items.map { $0["name"]?.string }, names, "\(answer)")
    }
  }

  /// A watch ends before it receives rows of a feed that its user may not read.
  @Test func watchEndsWhenItsFeedAddsAnUnreadableChild() throws {
    try harness.configure(Self.shownRules)
    let (client, root) = (harness.connect(uid: 2000), harness.connect(uid: 0))
    _ = harness.ask(root, "insert", #"{"feed":"secret","elements":["hidden"]}"#)
    _ = harness.ask(client, "watch", #"{"feed":"home"}"#)
    expect(harness.ask(root, "insertChild", #"{"feed":"home","child":"secret"}"#).first?.json?["result"] != nil)
    let frames = harness.take(client)
    expect(frames.count == 1 && frames.first?.json?["params"]?["reason"]?.string == "access")
    expect(!harness.isOpen(client))
  }

  /// The end of a feed that was undefined waits for the throttle of its watch, and the next feed has its number.
  @Test func watchOfAFormerFeedDoesNotShowAnUnreadableChildOfAnother() throws {
    try harness.configure(#"{"access": [{"feeds": ["former", "home", "child"], "allow": "read"}]}"#)
    let (client, root) = (harness.connect(uid: 2000), harness.connect(uid: 0))
    for feed in ["secret", "child", "former"] {
      _ = harness.ask(root, "define", #"{"feed":"\#(feed)","kind":"array"}"#)
      _ = harness.ask(root, "insert", #"{"feed":"\#(feed)","elements":["\#(feed)"]}"#)
    }
    _ = harness.ask(client, "watch", #"{"feed":"former","throttle":60000}"#)
    let number = try harness.engine.catalog.feed(named: "former").number
    _ = harness.ask(root, "insert", #"{"feed":"former","elements":["more"]}"#)
    _ = harness.ask(root, "undefine", #"{"feed":"former"}"#)
    _ = harness.ask(root, "define", #"{"feed":"home","kind":"composed","children":["child"]}"#)
    try expectEqual(harness.engine.catalog.feed(named: "home").number, number)
    _ = harness.ask(client, "watch", #"{"feed":"home"}"#)
    expectEqual(harness.engine.watches.count, 2)
    expect(harness.ask(root, "insertChild", #"{"feed":"home","child":"secret"}"#).first?.json?["result"] != nil)
    let frames = harness.take(client)
    expect(frames.count == 1 && frames.first?.json?["params"]?["reason"]?.string == "access", "\(frames)")
    expect(!harness.isOpen(client))
  }

  @Test(
    arguments: [
      ("*", "a/b", true), ("in*x", "inbox", true), ("in*x", "inboxy", false), ("?", "ab", false),
      ("a*b*c", "aXbYbc", true),
      ("inbox", "inbox/urgent", true), ("*/urgent", "inbox/urgent", true), ("", "a", false),
    ] as [(String, String, Bool)])
  func patternsMatchFeedNames(pattern: String, name: String, matches: Bool) {
    expectEqual(NamePattern(pattern).matches(feed: name), matches)
  }

  /// A request that is refused later must not change, before its end, what others may read.
  @Test(arguments: SlicedRequestTests.Log.allCases)
  func rulesDoNotFollowHalfChangedFeeds(_ log: SlicedRequestTests.Log) throws {
    let harness = SlicedRequestTests.harness(log)
    let (owner, reader) = (harness.connect(uid: 0), harness.connect(uid: 7))
    for name in ["shown", "hidden", "own"] { _ = harness.ask(owner, "define", #"{"feed":"\#(name)","kind":"single"}"#) }
    _ = harness.ask(owner, "define", #"{"feed":"home","kind":"composed","children":["shown"]}"#)
    SlicedRequestTests.fill(harness, owner)
    try harness.configure(
      #"{"access":[{"feeds":["home","shown"],"allow":"read"},{"uid":7,"feeds":"own","allow":"write"}]}"#)
    let operations = [
      #"{"method":"insertChild","params":{"feed":"home","child":"hidden"}}"#,
      #"{"method":"update","params":{"feed":"c","elements":\#(SlicedRequestTests.elements(0..<60, 1))}}"#,
      #"{"method":"removeChild","params":{"feed":"home","child":"none"}}"#,
    ].joined(separator: ",")
    harness.supply(owner, "transaction", #"{"ops":[\#(operations)]}"#)
    var exclusiveTurns = 0
    _ = SlicedRequestTests.turns(harness, until: owner) { _ in
      guard harness.isExclusive else { return }
      exclusiveTurns += 1
      guard exclusiveTurns == 5 else { return }
      harness.supply(reader, "get", #"{"feed":"home","at":[0,0]}"#)
      harness.supply(reader, "put", #"{"feed":"own","element":1,"if":{"feed":"home","revision":99}}"#, id: 2)
    }
    harness.turn()
    expect(exclusiveTurns > 5)
    expectEqual(harness.take(owner).map { $0.json?.errorCode }, [-32000])
    expectEqual(harness.take(reader).map { $0.json?.errorCode }, [nil, -32009])
  }

  /// A long text is checked when it arrives, also while feeds are half changed. One may then show less than before and after.
  @Test(arguments: SlicedRequestTests.Log.allCases)
  func rulesForLongTextsDoNotFollowHalfChangedFeeds(_ log: SlicedRequestTests.Log) throws {
    let harness = SlicedRequestTests.harness(log)
    let (owner, reader) = (harness.connect(uid: 0), harness.connect(uid: 7))
    for name in ["hidden", "own"] { _ = harness.ask(owner, "define", #"{"feed":"\#(name)","kind":"single"}"#) }
    _ = harness.ask(owner, "define", #"{"feed":"home","kind":"composed","children":["hidden"]}"#)
    SlicedRequestTests.fill(harness, owner)
    try harness.configure(#"{"access":[{"feeds":"home","allow":"read"},{"uid":7,"feeds":"own","allow":"write"}]}"#)
    let operations = [
      #"{"method":"removeChild","params":{"feed":"home","child":"hidden"}}"#,
      #"{"method":"update","params":{"feed":"c","elements":\#(SlicedRequestTests.elements(0..<60, 1))}}"#,
      #"{"method":"removeChild","params":{"feed":"home","child":"none"}}"#,
    ].joined(separator: ",")
    harness.supply(owner, "transaction", #"{"ops":[\#(operations)]}"#)
    let text = String(repeating: "x", count: 300 << 10)
    var (exclusiveTurns, turnsWithText) = (0, 0)
    _ = SlicedRequestTests.turns(harness, until: owner) { _ in
      guard harness.isExclusive else { return }
      exclusiveTurns += 1
      if harness.engine.hasLongTextToScan { turnsWithText += 1 }
      guard exclusiveTurns == 5 else { return }
      harness.supply(reader, "put", #"{"feed":"own","element":"\#(text)","if":{"feed":"home","revision":99}}"#)
    }
    harness.turn()
    expect(turnsWithText > 2)
    expectEqual(harness.take(owner).map { $0.json?.errorCode }, [-32000])
    expectEqual(harness.take(reader).map { $0.json?.errorCode }, [-32006])
  }
}
