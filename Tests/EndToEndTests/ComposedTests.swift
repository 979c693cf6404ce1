import TestSupport
import Testing

/// Composed and segmented feeds through the socket: mapping of positions, active children, and a shared selection.
@Suite("Composed and segmented feeds")
struct ComposedTests {
  private let session: FeedSession

  init() throws {
    session = try FeedSession()
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

  @Test("A selection follows its row and is shared")
  func contacts() throws {
    try session.ask("define", #"{"feed":"family","kind":"array"}"#)
    try session.ask("insert", #"{"feed":"family","elements":[{"name":"Dad"}]}"#)
    try session.ask("insert", #"{"feed":"family","elements":[{"name":"Mum"}]}"#)
    try session.ask("define", #"{"feed":"friends","kind":"array"}"#)
    try session.ask("insert", #"{"feed":"friends","elements":[{"name":"Best mate"}]}"#)
    try define("contacts", "composed", "[]")
    try session.ask("insertChild", #"{"feed":"contacts","child":"family"}"#)
    try session.ask("insertChild", #"{"feed":"contacts","child":"friends"}"#)
    let contacts = try session.ask("describe", #"{"feed":"contacts"}"#)
    expectEqual(contacts["sections"].elements.count, 2)
    expectEqual(contacts["counts"][1].int, 1)
    try expectEqual(session.ask("get", #"{"feed":"contacts","at":[0,1]}"#)["element"], #"{"name":"Mum"}"#)
    let other = try session.watch("contacts")
    try expectEqual(session.ask("select", #"{"feed":"contacts","at":[[0,1]]}"#)["selected"], "[[0,1]]")
    let told = try other.notifications()
    expectEqual(told.map { $0["method"].string }, ["selection"])
    expectEqual(told[0]["params"]["selected"], "[[0,1]]")
    // The row above is removed; the selected row stays selected at its new position.
    try session.ask("remove", #"{"feed":"family","at":[0]}"#)
    try expectEqual(other.notifications().map { $0["params"]["selected"].text }, ["null", "[[0,0]]"])
  }

  @Test("Changes of children are mapped to the coordinates of each parent")
  func mappings() throws {
    try arrays("section1", "section2", "section3", "section4")
    try define("inner", "composed", #"["section2","section3"]"#)
    try define("provider", "composed", #"["section1","inner","section4"]"#)
    try expectEqual(session.sections("provider"), ["section1", "section2", "section3", "section4"])
    let watcher = try session.watch("provider")
    // Row 0 of section3 is [2, 0] in the outer feed and [1, 0] in the inner one.
    let inner = try session.watch("inner")
    try session.ask("insert", #"{"feed":"section3","elements":["new"],"at":[0]}"#)
    try expectEqual(watcher.delta().change, "-[] +[[2,0]] ~[]")
    try expectEqual(inner.delta().change, "-[] +[[1,0]] ~[]")
    // Removing section2 from the inner feed moves the following sections up.
    try session.ask("removeChild", #"{"feed":"inner","child":"section2"}"#)
    try expectEqual(watcher.delta()["sections"], #"{"deleted":[1],"added":[]}"#)
    try session.ask("insertChild", #"{"feed":"inner","child":"section2","after":"section3"}"#)
    let back = try watcher.delta()
    expectEqual(back["sections"], #"{"deleted":[],"added":[{"at":2,"name":"section2"}]}"#)
    expectEqual(back["added"], "[[2,0]]")
    try expectEqual(session.sections("provider"), ["section1", "section3", "section2", "section4"])
  }

  @Test("A change passes through forty levels, and cycles are refused")
  func nesting() throws {
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
    try expectEqual(watcher.delta().change, "-[] +[] ~[[1,0]]")
    try expectEqual(session.refusal("insertChild", "{\"feed\":\"level0\",\"child\":\"top\"}"), -32001)
  }

  @Test("A segmented feed shows its active child")
  func activeChild() throws {
    try arrays("a", "b", "c")
    try define("all", "composed", #"["a","b","c"]"#)
    try define("one", "segmented", "[]")
    try expectEqual(session.sections("one"), [])
    let watcher = try session.watch("one")
    // The first child added becomes active.
    try session.ask("insertChild", #"{"feed":"one","child":"b"}"#)
    try expectEqual(watcher.delta()["sections"]["added"], #"[{"at":0,"name":"b"}]"#)
    // Inserting before the active child keeps it active, and watchers are not notified.
    try session.ask("insertChild", #"{"feed":"one","child":"a","before":"b"}"#)
    try session.ask("insertChild", #"{"feed":"one","child":"c","after":"b"}"#)
    try expectEqual(watcher.notifications(), [])
    try expectEqual(session.sections("one"), ["b"])
    // Switching deletes and adds sections.
    try session.ask("activate", #"{"feed":"one","child":"a"}"#)
    let switched = try watcher.delta()
    expectEqual(switched["sections"], #"{"deleted":[0],"added":[{"at":0,"name":"a"}]}"#)
    expectEqual(switched["elements"], #"["a"]"#)
    // Removing the active child activates its successor, or the last child.
    try session.ask("removeChild", #"{"feed":"one","child":"a"}"#)
    try expectEqual(session.sections("one"), ["b"])
    try session.ask("activate", #"{"feed":"one","child":99}"#)
    try session.ask("removeChild", #"{"feed":"one","child":"c"}"#)
    try expectEqual(session.sections("one"), ["b"])
    try session.ask("activate", #"{"feed":"one","child":-1}"#)
    try expectEqual(session.sections("one"), [])
    try expectEqual(session.refusal("activate", #"{"feed":"one","child":"c"}"#), -32602)
    // An empty section is still a section.
    try session.ask("remove", #"{"feed":"a","at":[0]}"#)
    try expectEqual(session.sections("all"), ["a", "b", "c"])
  }

  @Test("A single adds, updates and deletes its row")
  func single() throws {
    try session.ask("define", #"{"feed":"banner","kind":"single"}"#)
    let watcher = try session.watch("banner")
    for (element, change) in [
      ("\"some\"", "-[] +[[0,0]] ~[]"), ("\"other\"", "-[] +[] ~[[0,0]]"), ("null", "-[[0,0]] +[] ~[]"),
    ] {
      try expectEqual(session.ask("put", "{\"feed\":\"banner\",\"element\":\(element)}").change, change)
      try expectEqual(watcher.delta().change, change)
    }
    try session.ask("put", #"{"feed":"banner","element":null}"#)
    try expectEqual(watcher.notifications(), [])
    try expectEqual(session.sections("banner"), ["banner"])
  }

  @Test("A transaction over ten feeds is one delta for each watcher")
  func transaction() throws {
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
    expectEqual(result["results"].elements.count, 20)
    let deltas = try watchers.map { try $0.delta() }
    expectEqual(Set(deltas.map { $0["revision"].int }), [result["revision"].int])
    for delta in deltas.prefix(10) { expectEqual(delta["elements"], "[2,1]") }
    for delta in deltas.suffix(2) { expectEqual(delta["added"].elements.count, 20) }
  }
}
