import Testing

/// Seed 002, Composed: its example, its mappings, the rules of its providers and sections, and a behaviour that all share.
@Suite("seed002 Composed")
struct Seed002ComposedTests {
  private let session: SeedSession

  init() throws {
    session = try SeedSession()
  }

  private func arrays(_ names: String...) throws {
    for name in names {
      try session.ask("define", "{\"feed\":\"\(name)\",\"kind\":\"array\"}")
      try session.ask("insert", "{\"feed\":\"\(name)\",\"elements\":[\"\(name)\"]}")
    }
  }

  private func define(_ name: String, _ kind: String, _ children: String) throws {
    try session.ask("define", "{\"feed\":\"\(name)\",\"kind\":\"\(kind)\",\"children\":\(children)}")
  }

  @Test func contacts() throws {
    try session.ask("define", #"{"feed":"family","kind":"array"}"#)
    try session.ask("insert", #"{"feed":"family","elements":[{"name":"Dad"}]}"#)
    try session.ask("insert", #"{"feed":"family","elements":[{"name":"Mum"}]}"#)
    try session.ask("define", #"{"feed":"friends","kind":"array"}"#)
    try session.ask("insert", #"{"feed":"friends","elements":[{"name":"Best mate"}]}"#)
    try define("contacts", "composed", "[]")
    try session.ask("insertChild", #"{"feed":"contacts","child":"family"}"#)
    try session.ask("insertChild", #"{"feed":"contacts","child":"friends"}"#)
    let contacts = try session.ask("describe", #"{"feed":"contacts"}"#)
    #expect(contacts["sections"].elements.count == 2)
    #expect(contacts["counts"][1].int == 1)
    #expect(try session.ask("get", #"{"feed":"contacts","at":[0,1]}"#)["element"].text == #"{"name":"Mum"}"#)
    // didSelect(at: 1) in section 0, which here everybody sees.
    let other = try session.watch("contacts")
    #expect(try session.ask("select", #"{"feed":"contacts","at":[[0,1]]}"#)["selected"].text == "[[0,1]]")
    let told = try other.notifications()
    #expect(told.map { $0["method"].string } == ["selection"])
    #expect(told[0]["params"]["selected"].text == "[[0,1]]")
    // Dad goes; Mum stays selected where she is now.
    try session.ask("remove", #"{"feed":"family","at":[0]}"#)
    #expect(try other.notifications().map { $0["params"]["selected"].text } == ["null", "[[0,0]]"])
  }

  @Test func mappings() throws {
    try arrays("section1", "section2", "section3", "section4")
    try define("inner", "composed", #"["section2","section3"]"#)
    try define("provider", "composed", #"["section1","inner","section4"]"#)
    #expect(try session.sections("provider") == ["section1", "section2", "section3", "section4"])
    let watcher = try session.watch("provider")
    // Local index 0 of section 3 is [2, 0] for the provider, and [1, 0] for the inner one.
    let inner = try session.watch("inner")
    try session.ask("insert", #"{"feed":"section3","elements":["new"],"at":[0]}"#)
    #expect(try watcher.delta().change == "-[] +[[2,0]] ~[]")
    #expect(try inner.delta().change == "-[] +[[1,0]] ~[]")
    // Taking section 2 out of the inner provider moves what follows up.
    try session.ask("removeChild", #"{"feed":"inner","child":"section2"}"#)
    #expect(try watcher.delta()["sections"].text == #"{"deleted":[1],"added":[]}"#)
    try session.ask("insertChild", #"{"feed":"inner","child":"section2","after":"section3"}"#)
    let back = try watcher.delta()
    #expect(back["sections"].text == #"{"deleted":[],"added":[{"at":2,"name":"section2"}]}"#)
    #expect(back["added"].text == "[[2,0]]")
    #expect(try session.sections("provider") == ["section1", "section3", "section2", "section4"])
  }

  @Test func nestingWithoutLimit() throws {
    try arrays("leaf", "beside")
    var below = "leaf"
    for level in 0..<40 {
      let name = "level\(level)"
      try define(name, level % 2 == 0 ? "composed" : "segmented", "[\"\(below)\"]")
      below = name
    }
    try define("top", "composed", "[\"beside\",\"\(below)\"]")
    let watcher = try session.watch("top")
    try session.ask("replace", #"{"feed":"leaf","elements":["other"],"at":[0]}"#)
    #expect(try watcher.delta().change == "-[] +[] ~[[1,0]]")
    #expect(try session.refusal("insertChild", "{\"feed\":\"level0\",\"child\":\"top\"}") == -32001)
  }

  @Test func composedShowsAllSegmentedOne() throws {
    try arrays("a", "b", "c")
    try define("all", "composed", #"["a","b","c"]"#)
    try define("one", "segmented", "[]")
    #expect(try session.sections("one") == [])
    let watcher = try session.watch("one")
    // The first child added becomes active.
    try session.ask("insertChild", #"{"feed":"one","child":"b"}"#)
    #expect(try watcher.delta()["sections"]["added"].text == #"[{"at":0,"name":"b"}]"#)
    // Inserting before the active one keeps it active, and nobody sees anything.
    try session.ask("insertChild", #"{"feed":"one","child":"a","before":"b"}"#)
    try session.ask("insertChild", #"{"feed":"one","child":"c","after":"b"}"#)
    #expect(try watcher.notifications() == [])
    #expect(try session.sections("one") == ["b"])
    // Switching is sections out, sections in.
    try session.ask("activate", #"{"feed":"one","child":"a"}"#)
    let switched = try watcher.delta()
    #expect(switched["sections"].text == #"{"deleted":[0],"added":[{"at":0,"name":"a"}]}"#)
    #expect(switched["elements"].text == #"["a"]"#)
    // Removing the active one activates its successor, or the last.
    try session.ask("removeChild", #"{"feed":"one","child":"a"}"#)
    #expect(try session.sections("one") == ["b"])
    try session.ask("activate", #"{"feed":"one","child":99}"#)
    try session.ask("removeChild", #"{"feed":"one","child":"c"}"#)
    #expect(try session.sections("one") == ["b"])
    try session.ask("activate", #"{"feed":"one","child":-1}"#)
    #expect(try session.sections("one") == [])
    #expect(try session.refusal("activate", #"{"feed":"one","child":"c"}"#) == -32602)
    // A section stays a section when it is empty.
    try session.ask("remove", #"{"feed":"a","at":[0]}"#)
    #expect(try session.sections("all") == ["a", "b", "c"])
  }

  @Test func singleElementSection() throws {
    try session.ask("define", #"{"feed":"banner","kind":"single"}"#)
    let watcher = try session.watch("banner")
    for (element, change) in [
      ("\"some\"", "-[] +[[0,0]] ~[]"), ("\"other\"", "-[] +[] ~[[0,0]]"), ("null", "-[[0,0]] +[] ~[]"),
    ] {
      #expect(try session.ask("put", "{\"feed\":\"banner\",\"element\":\(element)}").change == change)
      #expect(try watcher.delta().change == change)
    }
    try session.ask("put", #"{"feed":"banner","element":null}"#)
    #expect(try watcher.notifications() == [])
    #expect(try session.sections("banner") == ["banner"])
  }

  /// What one transaction does to ten feeds and to those that show them reaches every watcher as one delta.
  @Test func aTransactionOverTenFeedsIsOneDeltaEach() throws {
    let names = (0..<10).map { "feed\($0)" }
    for name in names { try session.ask("define", "{\"feed\":\"\(name)\",\"kind\":\"array\"}") }
    let children = "[" + names.map { "\"\($0)\"" }.joined(separator: ",") + "]"
    try define("all", "composed", children)
    try define("top", "segmented", #"["all"]"#)
    let watchers = try (names + ["all", "top"]).map { try session.watch($0) }
    let operations = names.flatMap { name in
      [1, 2].map { "{\"method\":\"insert\",\"params\":{\"feed\":\"\(name)\",\"elements\":[\($0)],\"at\":[0]}}" }
    }
    let result = try session.ask("transaction", "{\"ops\":[\(operations.joined(separator: ","))]}")
    #expect(result["results"].elements.count == 20)
    let deltas = try watchers.map { try $0.delta() }
    #expect(Set(deltas.map { $0["revision"].int }) == [result["revision"].int])
    for delta in deltas.prefix(10) { #expect(delta["elements"].text == "[2,1]") }
    for delta in deltas.suffix(2) { #expect(delta["added"].elements.count == 20) }
  }
}
