import FeedClient
import FeedSystem
import TestSupport
import Testing

@testable import FeedCommands

struct DefinitionOptionsTests {
  /// Returns the definition of a command line of `feedclient define`.
  private func definition(_ words: String...) throws -> String {
    let command = Command.define
    let terminal = Terminal(descriptor: -1, environment: Environment([:]))
    let options = try command.table.parse(words)
    return try Invocation(
      command: command, options: options, console: Console(terminal: terminal, errorTerminal: terminal, isJSON: true),
      environment: Environment([:]), global: try Program.help.parse([])
    ).definition()
  }

  @Test("bins with filters and sort keys") func binsWithFiltersAndOrders() throws {
    let json = try definition(
      "inbox", "--bin", "urgent=@.priority >= 8 && @.read == false", "--bin", "rest", "--sort",
      "urgent=$.priority:desc", "--sort", "urgent=$['a:b']", "--exclusive", "--id", "$.key", "--type", "$.kind",
      "--retain-count", "100", "--retain-seconds", "3600", "--replace")
    expectEqual(
      json,
      """
      {"feed":"inbox","kind":"collection","id":"$.key","type":"$.kind","exclusive":true,"bins":[\
      {"name":"urgent","filter":"@.priority >= 8 && @.read == false","sort":[\
      {"by":"$.priority","order":"descending"},{"by":"$['a:b']","order":"ascending"}]},{"name":"rest"}],\
      "retain":{"count":100,"seconds":3600},"replace":true}
      """)
  }

  @Test("expiring arrays with identity, sorted collections without bins, and other kinds") func kinds() throws {
    try expectEqual(
      definition("queue", "--kind", "array", "--id", "$.id", "--retain-until", "$.expires", "--retain-count", "9"),
      #"{"feed":"queue","kind":"array","id":"$.id","retain":{"count":9,"until":"$.expires"}}"#)
    try expectEqual(definition("log"), #"{"feed":"log","kind":"collection"}"#)
    try expectEqual(
      definition("log", "--sort", "all=$.time:ascending"),
      #"{"feed":"log","kind":"collection","bins":[{"name":"all","sort":[{"by":"$.time","order":"ascending"}]}]}"#)
    try expectEqual(
      definition("tabs", "--kind", "segmented", "--child", "home", "--child", "inbox/urgent", "--current", "0"),
      #"{"feed":"tabs","kind":"segmented","children":["home","inbox/urgent"],"current":0}"#)
  }

  @Test func slotsAndOptionsOfFeedsAreParsed() throws {
    let json = try definition(
      "mixed", "--kind", "slots", "--content", "Style=styles", "--content", "Ad=ads/active", "--pattern",
      "Style,Style,Ad",
      "--header", "Ad", "--repeatable", "Style", "--default", "Style", "--fixed", "0=Banner", "--multiple", "--no-move")
    expectEqual(
      json,
      #"""
      {"feed":"mixed","kind":"slots","contents":{"Style":"styles","Ad":"ads/active"},\#
      "pattern":["Style","Style","Ad"],"header":["Ad"],"repeatables":["Style"],"default":"Style",\#
      "fixed":{"0":"Banner"},"movable":false,"multiple":true}
      """#)
    try expectEqual(
      definition("f", "--kind", "array", "--no-multiple"), #"{"feed":"f","kind":"array","multiple":false}"#)
    #expect(throws: Failure.self) { try definition("f", "--multiple", "--no-multiple") }
    #expect(throws: Failure.self) { try definition("mixed", "--fixed", "x=Banner") }
    #expect(throws: Failure.self) { try definition("mixed", "--content", "Style") }
  }

  @Test("a view has a source, a filter, sort keys without a bin, and a window") func views() throws {
    let json = try definition(
      "top", "--kind", "view", "--of", "inbox/urgent", "--filter", "@.read == false", "--sort", "$.priority:desc",
      "--sort", "$['a=b:c']", "--offset", "0", "--limit", "20")
    expectEqual(
      json,
      #"""
      {"feed":"top","kind":"view","of":"inbox/urgent","filter":"@.read == false","sort":[\#
      {"by":"$.priority","order":"descending"},{"by":"$['a=b:c']","order":"ascending"}],"offset":0,"limit":20}
      """#)
    try expectEqual(definition("v", "--kind", "view", "--of", "a"), #"{"feed":"v","kind":"view","of":"a"}"#)
    #expect(throws: UsageError.self) { try definition("v", "--kind", "view", "--of", "a", "--limit", "0") }
  }

  @Test("a definition in JSON is unchanged, and is a collection unless it has a kind") func jsonDefinitions() throws {
    try expectEqual(definition("{\"feed\": \"x\", \"kind\": \"array\"}"), "{\"feed\": \"x\", \"kind\": \"array\"}")
    try expectEqual(definition("{\"feed\":\"x\"}"), "{\"feed\":\"x\",\"kind\":\"collection\"}")
    try expectEqual(
      definition("{\"feed\":\"x\",\"kind\":\"single\"}", "--replace"),
      "{\"feed\":\"x\",\"kind\":\"single\",\"replace\":true}")
  }

  @Test("contradicting options are refused") func contradictions() {
    #expect(throws: Failure.usage("define: --bin '=x': expected NAME or NAME=FILTER")) {
      try definition("f", "--bin", "=x")
    }
    #expect(throws: Failure.self) { try definition("f", "--bin", "a", "--bin", "a=1") }
    #expect(throws: Failure.usage("define: --sort 'b=$.x': there is no --bin 'b'")) {
      try definition("f", "--bin", "a", "--sort", "b=$.x")
    }
    #expect(throws: Failure.self) { try definition("f", "--sort", "all") }
    #expect(throws: Failure.self) { try definition("f", "--sort", "all=") }
    #expect(throws: Failure.usage("define: --bin cannot be combined with a definition in JSON")) {
      try definition("{\"feed\":\"x\"}", "--bin", "a")
    }
    #expect(throws: Failure.usage("define: the definition is not JSON: the text ends inside a value at byte 7")) {
      try definition("{\"feed\"")
    }
    #expect(throws: UsageError.self) { try definition("f", "--retain-count", "0") }
  }
}
