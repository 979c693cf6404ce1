import TestSupport
import Testing

/// The examples that Bucket and Slots share word for word; each library names the list after itself.
struct SlotsExamples {
  let session: SeedSession
  let list: String

  init(_ list: String) throws {
    session = try SeedSession()
    self.list = list
    for feed in ["alphabet", "number"] { try session.ask("define", "{\"feed\":\"\(feed)\",\"kind\":\"array\"}") }
  }

  /// `list.pattern = …`, `list.repeatables = …`
  func define(pattern: String, repeatables: String = "[]") throws {
    try session.ask(
      "define",
      """
      {"feed":"\(list)","kind":"slots","contents":{"alphabet":"alphabet","number":"number"},"pattern":\(pattern),\
      "repeatables":\(repeatables),"replace":true}
      """)
  }

  /// `list["alphabet"] = …`, `list["number"] = …`
  func store() throws {
    try session.ask("set", #"{"feed":"alphabet","elements":["a","b","c"]}"#)
    try session.ask("set", #"{"feed":"number","elements":[1,2,3,4,5]}"#)
  }

  var contents: [String] {
    get throws { try session.rows(list)[0] }
  }

  func get(_ index: Int) throws -> SeedValue { try session.ask("get", "{\"feed\":\"\(list)\",\"at\":[0,\(index)]}") }

  func setsAPattern() throws {
    try define(pattern: #"["alphabet","number"]"#)
    try store()
    #expect(try contents == [#""a""#, "1", #""b""#, "2", #""c""#, "3"])
    #expect(try session.ask("describe", "{\"feed\":\"\(list)\"}")["count"].int == 6)
    try define(pattern: #"["alphabet","number","number"]"#)
    #expect(try contents == [#""a""#, "1", "2", #""b""#, "3", "4", #""c""#, "5"])
  }

  func repeats() throws {
    try define(pattern: #"["alphabet","number"]"#, repeatables: #"["number"]"#)
    try store()
    #expect(try contents == [#""a""#, "1", #""b""#, "2", #""c""#, "3", "4", "5"])
  }

  func getsContents() throws {
    try define(pattern: #"["alphabet","number","number"]"#)
    try store()
    #expect(try get(6)["element"].string == "c")
    #expect(try get(7)["element"].int == 5)
    #expect(try get(8)["element"].text == "null")
    let slice = try session.ask("range", "{\"feed\":\"\(list)\",\"section\":0,\"from\":0,\"count\":4}")
    #expect(slice["elements"].text == #"["a",1,2,"b"]"#)
    #expect(slice["types"].text == #"["alphabet","number","number","alphabet"]"#)
  }

  /// Each advertisement after three styles; styles go on without advertisements. A screen shows what comes as it comes.
  func showsARealFeed() throws {
    for feed in ["styles", "ads"] { try session.ask("define", "{\"feed\":\"\(feed)\",\"kind\":\"array\"}") }
    try session.ask(
      "define",
      """
      {"feed":"\(list)","kind":"slots","contents":{"Style":"styles","Advertisement":"ads"},\
      "pattern":["Style","Style","Style","Advertisement"],"repeatables":["Style"]}
      """)
    let screen = try session.watch(list)
    try session.ask("set", #"{"feed":"styles","elements":["s1","s2","s3","s4","s5","s6","s7"]}"#)
    #expect(try screen.delta()["elements"].text == #"["s1","s2","s3","s4","s5","s6","s7"]"#)
    try session.ask("set", #"{"feed":"ads","elements":["x","y"]}"#)
    let delta = try screen.delta()
    #expect(delta.change == "-[] +[[0,3],[0,7]] ~[]")
    #expect(delta["elements"].text == #"["x","y"]"#)
    #expect(delta["types"].text == #"["Advertisement","Advertisement"]"#)
    #expect(try get(3)["type"].string == "Advertisement")
    #expect(try get(4)["type"].string == "Style")
    #expect(try session.ask("describe", "{\"feed\":\"\(list)\"}")["count"].int == 9)
    try session.ask("insert", #"{"feed":"styles","elements":["s8"]}"#)
    #expect(try screen.delta().change == "-[] +[[0,9]] ~[]")
  }
}
