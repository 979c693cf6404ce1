import FeedEngine
import FeedModel
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedServer

@Suite("Reading a configuration")
struct ConfigurationParserTests {
  @Test func definitionsAreSortedByDependency() throws {
    let configuration = try Configuration(
      text: """
        {"feeds": [
          {"feed": "top", "kind": "composed", "children": ["home", "mix"]},
          {"feed": "mix", "kind": "slots", "contents": {"N": "inbox/urgent"}, "pattern": ["N"]},
          {"feed": "home", "kind": "segmented", "children": ["people", "elsewhere"]},
          {"feed": "people", "kind": "managed", "database": "contacts.sqlite", "query": "SELECT 1 AS id"},
          {"feed": "inbox", "kind": "collection", "bins": [{"name": "urgent"}]}]}
        """)
    let names = configuration.entries.map(\.definition.name)
    for (later, earlier) in [("top", "home"), ("top", "mix"), ("mix", "inbox"), ("home", "people")] {
      try expect(require(names.firstIndex(of: earlier)) < (try require(names.firstIndex(of: later))))
    }
    let people = try require(configuration.entries.first { $0.definition.name == "people" })
    expectEqual(
      people.definition.content,
      .managed(ManagedDefinition(database: "/etc/feedd/contacts.sqlite", query: "SELECT 1 AS id")))
  }

  @Test func byteOrderMarkAtTheBeginningIsSkipped() throws {
    try expectEqual(Configuration(text: "\u{FEFF}{\"limits\": {\"maxBins\": 3}}").limits, ["maxBins": 3])
  }

  @Test func flagsOverrideLimitsOfTheFile() throws {
    let accounts = AccountNames(user: { _ in nil }, group: { _ in nil })
    var flags = Limits()
    flags.maxFeeds = 7
    let surroundings = Configuration.Surroundings(
      directory: "/", limits: flags, fixedLimits: ["maxFeeds"], accounts: accounts)
    let bytes = Array(#"{"limits": {"maxFeeds": 9, "maxBins": 3}}"#.utf8)
    let limits = try bytes.withUnsafeBytes {
      try Configuration(parsing: $0, surroundings).effectiveLimits(surroundings)
    }
    expectEqual(limits.maxFeeds, 7)
    expectEqual(limits.maxBins, 3)
  }

  /// The limits of a file take effect at the next start, so a daemon that runs reads definitions by its own, too.
  @Test(arguments: [(3, 8), (8, 3)])
  func definitionsKeepToTheLimitsInEffect(ofFile: Int, present: Int) throws {
    func isAccepted(bins count: Int) -> Bool {
      let accounts = AccountNames(user: { _ in nil }, group: { _ in nil })
      var limits = Limits()
      limits.maxBins = present
      let surroundings = Configuration.Surroundings(
        directory: "/", limits: Limits(), present: limits, accounts: accounts)
      let bins = (0..<count).map { #"{"name": "b\#($0)"}"# }.joined(separator: ", ")
      let text = #"{"limits": {"maxBins": \#(ofFile)}, "feeds": [{"feed": "k", "bins": [\#(bins)]}]}"#
      return Array(text.utf8).withUnsafeBytes { (try? Configuration(parsing: $0, surroundings)) != nil }
    }
    let lower = min(ofFile, present)
    expectEqual([lower, lower + 1].map(isAccepted(bins:)), [true, false])
  }

  /// Every error names its line, column and member, and the next step.
  @Test(
    arguments: [
      ("", "1:1: not JSON: no value"),
      ("{\n  \"feeds\": [,]}", "2:13: not JSON: unexpected byte"),
      ("{\n  \u{FEFF}\"feeds\": []}", "2:3: not JSON: unexpected byte order mark (U+FEFF)"),
      ("\u{FEFF}\u{FEFF}{}", "1:1: not JSON: unexpected byte order mark (U+FEFF)"),
      ("\u{FEFF}", "1:1: not JSON: no value"),
      ("\u{FEFF}[]", "1:1: must be an object"),
      ("[]", "1:1: must be an object"),
      (#"{"feed": []}"#, "1:2: feed: unknown member; did you mean \"feeds\"?"),
      (#"{"feeds\n": []}"#, "1:2: feeds\u{FFFD}: unknown member; did you mean \"feeds\"?"),
      (#"{"feeds": [], "feeds": []}"#, "1:15: feeds: is given twice"),
      (#"{"feeds": {}}"#, "1:11: feeds: must be an array"),
      (#"{"feeds": [{"kind": "array"}]}"#, "1:12: feeds[0].feed: is missing"),
      (#"{"feeds": [{"feed": "a", "kind": "aray"}]}"#, "1:34: feeds[0].kind: is \"aray\""),
      (
        #"{"feeds": [{"feed": "a", "kind": "array", "tipe": "$.x"}]}"#,
        "1:43: feeds[0].tipe: unknown member; did you mean \"type\"?"
      ),
      (
        #"{"feeds": [{"feed": "a", "kind": "collection", "bins": [{"name": "b", "filters": "@.x"}]}]}"#,
        "1:71: feeds[0].bins[0].filters: unknown member; did you mean \"filter\"?"
      ),
      (
        #"{"feeds": [{"feed": "a", "kind": "collection", "bins": [{"name": "b", "sort": [{"by": "$.x", "oder": 1}]}]}]}"#,
        "feeds[0].bins[0].sort[0].oder: unknown member; did you mean \"order\"?"
      ),
      (
        "{\"feeds\": [{\"feed\": \"a\", \"kind\": \"collection\",\n \"bins\": [{\"name\": \"b\", \"filter\": \"@.x >< 1\"}]}]}",
        "2:41: feeds[0].bins[0].filter: does not parse at byte 5"
      ),
      (
        #"{"feeds": [{"feed": "a", "kind": "array"}, {"feed": "a", "kind": "single"}]}"#,
        "1:53: feeds[1].feed: \"a\" is defined by feeds[0] already"
      ),
      (
        #"{"feeds": [{"feed": "a", "kind": "composed", "children": ["b"]}, {"feed": "b", "kind": "composed", "children": ["a"]}]}"#,
        "1:12: feeds[0]: \"a\" shows \"b\" shows \"a\", which is a cycle"
      ),
      (
        #"{"feeds": [{"feed": "a", "kind": "managed", "query": "SELECT 1"}]}"#,
        "1:12: feeds[0].database: is missing: give the path of an SQLite database"
      ),
      (#"{"limits": {"maxFeds": 1}}"#, "1:13: limits.maxFeds: unknown member; did you mean \"maxFeeds\"?"),
      (#"{"limits": {"maxFeeds": 0}}"#, "1:25: limits.maxFeeds: must be an integer from 1 to 1,000,000"),
      (#"{"access": {}}"#, "1:12: access: must be an array of rules"),
      (#"{"access": [{"uid": 1}]}"#, "1:13: access[0]: is missing \"allow\"; give"),
      (#"{"access": [{"uid": -1, "allow": ["read"]}]}"#, "1:21: access[0].uid: must be an integer"),
      (#"{"access": [{"user": "eve", "allow": ["read"]}]}"#, "1:22: access[0].user: there is no user \"eve\""),
      (#"{"access": [{"allow": ["red"]}]}"#, "1:24: access[0].allow[0]: is \"red\" and must be one of read, write"),
    ] as [(String, String)])
  func errorsNameTheirPlace(text: String, expected: String) throws {
    let error = #expect(throws: ConfigurationError.self) { try Configuration(text: text) }
    let description = error.map { "\($0)" } ?? ""
    expect(description.contains(expected), "\(description)")
  }
}
