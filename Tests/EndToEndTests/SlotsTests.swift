import TestSupport
import Testing

/// Slots feeds through the socket.
@Suite("Slots feeds")
struct SlotsTests {
  @Test("Rows alternate by the pattern")
  func pattern() throws {
    let session = try FeedSession()
    for feed in ["months", "pictures"] { try session.ask("define", "{\"feed\":\"\(feed)\",\"kind\":\"array\"}") }
    try session.ask(
      "define",
      """
      {"feed":"slots","kind":"slots","contents":{"Month":"months","Picture":"pictures"},\
      "pattern":["Month","Picture","Picture","Month","Picture"]}
      """)
    try session.ask("set", #"{"feed":"months","elements":["Nov 2014","Dec 2014","Jan 2015"]}"#)
    try session.ask("set", #"{"feed":"pictures","elements":[{"picture":1},{"picture":2},{"picture":3}]}"#)
    try expectEqual(
      session.rows("slots")[0],
      [
        #""Nov 2014""#, #"{"picture":1}"#, #"{"picture":2}"#, #""Dec 2014""#, #"{"picture":3}"#, #""Jan 2015""#,
      ])
    try expectEqual(session.ask("get", #"{"feed":"slots","at":[0,2]}"#)["element"], #"{"picture":2}"#)
    try expectEqual(session.ask("get", #"{"feed":"slots","at":[0,3]}"#)["type"].string, "Month")
  }

  @Test("A new pattern rearranges the rows") func changedPattern() throws { try SlotsExample().changePattern() }
  @Test("Repeatable types continue when the others are exhausted") func repeatables() throws {
    try SlotsExample().repeatTypes()
  }
  @Test("Rows and types are read by position") func reading() throws { try SlotsExample().readByPosition() }
  @Test("Advertisements appear between styles as both change") func advertisements() throws {
    try SlotsExample().interleaveAdvertisements()
  }

  @Test("Header, default and fixed positions")
  func headerDefaultAndFixed() throws {
    let session = try FeedSession()
    for feed in ["text", "image", "banner"] { try session.ask("define", "{\"feed\":\"\(feed)\",\"kind\":\"array\"}") }
    let contents = #""kind":"slots","contents":{"T":"text","I":"image","B":"banner"}"#
    try session.ask("set", #"{"feed":"text","elements":["t1","t2","t3","t4"]}"#)
    try session.ask("set", #"{"feed":"image","elements":["i1"]}"#)
    try session.ask("set", #"{"feed":"banner","elements":["b1","b2"]}"#)
    for (name, rule, shown) in [
      ("header", #""pattern":["T"],"header":["I","T"]"#, ["i1", "t1", "t2", "t3", "t4"]),
      ("default", #""pattern":["T","I"],"default":"T""#, ["t1", "i1", "t2", "t3", "t4"]),
      ("fixed", #""pattern":["T","I"],"fixed":{"0":"B","2":"B"}"#, ["b1", "t1", "b2", "i1", "t2"]),
      ("ended", #""pattern":["T"],"header":["I","I"],"fixed":{"0":"B"}"#, ["i1"]),
    ] {
      try session.ask("define", "{\"feed\":\"\(name)\",\(contents),\(rule)}")
      try expectEqual(session.rows(name)[0], shown.map { "\"\($0)\"" }, "\(name)")
    }
  }

  @Test("The content of a type may have several sections")
  func contentsOfSeveralSections() throws {
    let session = try FeedSession()
    for feed in ["a", "b", "c"] { try session.ask("define", "{\"feed\":\"\(feed)\",\"kind\":\"array\"}") }
    try session.ask("define", #"{"feed":"both","kind":"composed","children":["a","b"]}"#)
    try session.ask(
      "define", #"{"feed":"slots","kind":"slots","contents":{"X":"both","C":"c"},"pattern":["X","C"]}"#)
    try session.ask("set", #"{"feed":"c","elements":[7,8,9]}"#)
    try session.ask("set", #"{"feed":"b","elements":[3]}"#)
    try session.ask("set", #"{"feed":"a","elements":[1,2]}"#)
    try expectEqual(session.rows("slots"), [["1", "7", "2", "8", "3", "9"]])
  }
}

/// A slots feed over letters and numbers.
private struct SlotsExample {
  let session: FeedSession
  let list = "slots"

  init() throws {
    session = try FeedSession()
    for feed in ["alphabet", "number"] { try session.ask("define", "{\"feed\":\"\(feed)\",\"kind\":\"array\"}") }
  }

  func define(pattern: String, repeatables: String = "[]") throws {
    try session.ask(
      "define",
      """
      {"feed":"\(list)","kind":"slots","contents":{"alphabet":"alphabet","number":"number"},"pattern":\(pattern),\
      "repeatables":\(repeatables),"replace":true}
      """)
  }

  func store() throws {
    try session.ask("set", #"{"feed":"alphabet","elements":["a","b","c"]}"#)
    try session.ask("set", #"{"feed":"number","elements":[1,2,3,4,5]}"#)
  }

  var contents: [String] {
    get throws { try session.rows(list)[0] }
  }

  func get(_ index: Int) throws -> JSONValue { try session.ask("get", "{\"feed\":\"\(list)\",\"at\":[0,\(index)]}") }

  func changePattern() throws {
    try define(pattern: #"["alphabet","number"]"#)
    try store()
    try expectEqual(contents, [#""a""#, "1", #""b""#, "2", #""c""#, "3"])
    try expectEqual(session.ask("describe", "{\"feed\":\"\(list)\"}")["count"].int, 6)
    try define(pattern: #"["alphabet","number","number"]"#)
    try expectEqual(contents, [#""a""#, "1", "2", #""b""#, "3", "4", #""c""#, "5"])
  }

  func repeatTypes() throws {
    try define(pattern: #"["alphabet","number"]"#, repeatables: #"["number"]"#)
    try store()
    try expectEqual(contents, [#""a""#, "1", #""b""#, "2", #""c""#, "3", "4", "5"])
  }

  func readByPosition() throws {
    try define(pattern: #"["alphabet","number","number"]"#)
    try store()
    try expectEqual(get(6)["element"].string, "c")
    try expectEqual(get(7)["element"].int, 5)
    try expectEqual(get(8)["element"], "null")
    let slice = try session.ask("range", "{\"feed\":\"\(list)\",\"section\":0,\"from\":0,\"count\":4}")
    expectEqual(slice["elements"], #"["a",1,2,"b"]"#)
    expectEqual(slice["types"], #"["alphabet","number","number","alphabet"]"#)
  }

  /// An advertisement follows three styles. Styles continue without advertisements.
  func interleaveAdvertisements() throws {
    for feed in ["styles", "ads"] { try session.ask("define", "{\"feed\":\"\(feed)\",\"kind\":\"array\"}") }
    try session.ask(
      "define",
      """
      {"feed":"\(list)","kind":"slots","contents":{"Style":"styles","Advertisement":"ads"},\
      "pattern":["Style","Style","Style","Advertisement"],"repeatables":["Style"]}
      """)
    let screen = try session.watch(list)
    try session.ask("set", #"{"feed":"styles","elements":["s1","s2","s3","s4","s5","s6","s7"]}"#)
    try expectEqual(screen.delta()["elements"], #"["s1","s2","s3","s4","s5","s6","s7"]"#)
    try session.ask("set", #"{"feed":"ads","elements":["x","y"]}"#)
    let delta = try screen.delta()
    expectEqual(delta.change, "-[] +[[0,3],[0,7]] ~[]")
    expectEqual(delta["elements"], #"["x","y"]"#)
    expectEqual(delta["types"], #"["Advertisement","Advertisement"]"#)
    try expectEqual(get(3)["type"].string, "Advertisement")
    try expectEqual(get(4)["type"].string, "Style")
    try expectEqual(session.ask("describe", "{\"feed\":\"\(list)\"}")["count"].int, 9)
    try session.ask("insert", #"{"feed":"styles","elements":["s8"]}"#)
    try expectEqual(screen.delta().change, "-[] +[[0,9]] ~[]")
  }
}
