import Testing

/// Seed 001, Slots: every example of its page, through the socket, and what the library does besides.
@Suite("seed001 Slots")
struct Seed001SlotsTests {
  @Test func atAGlance() throws {
    let session = try SeedSession()
    for feed in ["months", "pictures"] { try session.ask("define", "{\"feed\":\"\(feed)\",\"kind\":\"array\"}") }
    try session.ask(
      "define",
      """
      {"feed":"slots","kind":"slots","contents":{"Month":"months","Picture":"pictures"},\
      "pattern":["Month","Picture","Picture","Month","Picture"]}
      """)
    try session.ask("set", #"{"feed":"months","elements":["Nov 2014","Dec 2014","Jan 2015"]}"#)
    try session.ask("set", #"{"feed":"pictures","elements":[{"picture":1},{"picture":2},{"picture":3}]}"#)
    #expect(
      try session.rows("slots")[0] == [
        #""Nov 2014""#, #"{"picture":1}"#, #"{"picture":2}"#, #""Dec 2014""#, #"{"picture":3}"#, #""Jan 2015""#,
      ])
    #expect(try session.ask("get", #"{"feed":"slots","at":[0,2]}"#)["element"].text == #"{"picture":2}"#)
    #expect(try session.ask("get", #"{"feed":"slots","at":[0,3]}"#)["type"].string == "Month")
  }

  @Test func usingPattern() throws { try SlotsExamples("slots").setsAPattern() }
  @Test func repeatables() throws { try SlotsExamples("slots").repeats() }
  @Test func gettingContents() throws { try SlotsExamples("slots").getsContents() }
  @Test func realWorldExample() throws { try SlotsExamples("slots").showsARealFeed() }

  @Test func headerDefaultAndFixed() throws {
    let session = try SeedSession()
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
      #expect(try session.rows(name)[0] == shown.map { "\"\($0)\"" }, "\(name)")
    }
  }

  /// A type's content may be any feed: its rows in flattened order.
  @Test func contentsOfSeveralSections() throws {
    let session = try SeedSession()
    for feed in ["a", "b", "c"] { try session.ask("define", "{\"feed\":\"\(feed)\",\"kind\":\"array\"}") }
    try session.ask("define", #"{"feed":"both","kind":"composed","children":["a","b"]}"#)
    try session.ask(
      "define", #"{"feed":"slots","kind":"slots","contents":{"X":"both","C":"c"},"pattern":["X","C"]}"#)
    try session.ask("set", #"{"feed":"c","elements":[7,8,9]}"#)
    try session.ask("set", #"{"feed":"b","elements":[3]}"#)
    try session.ask("set", #"{"feed":"a","elements":[1,2]}"#)
    #expect(try session.rows("slots") == [["1", "7", "2", "8", "3", "9"]])
  }
}
