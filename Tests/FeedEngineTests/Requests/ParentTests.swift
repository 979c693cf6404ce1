import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// How providers describe their children, and which rules of the children apply.
struct ParentTests {
  private let harness = EngineHarness()
  private let id: ConnectionID

  init() {
    id = harness.connect()
    for definition in [
      #"{"feed":"a","kind":"array","type":"$.k"}"#, #"{"feed":"one","kind":"array","multiple":false}"#,
      #"{"feed":"none","kind":"array","selectable":false}"#,
      #"{"feed":"c","kind":"collection","multiple":false,"bins":[{"name":"x"},{"name":"y","filter":"@.y"}]}"#,
      #"{"feed":"home","kind":"composed","children":["c","one","none","a"]}"#,
      #"{"feed":"tabs","kind":"segmented","children":["one","c","home"],"current":1}"#,
      #"{"feed":"mix","kind":"slots","contents":{"A":"a","One":"one"},"pattern":["A","One"],"repeatables":["A","One"]}"#,
    ] { _ = harness.ask(id, "define", definition) }
    _ = harness.ask(id, "insert", #"{"feed":"a","elements":[{"k":"big"},{"k":1},{"k":"small"}]}"#)
    _ = harness.ask(id, "insert", #"{"feed":"one","elements":[1,2]}"#)
    _ = harness.ask(id, "insert", #"{"feed":"none","elements":[1]}"#)
    _ = harness.ask(id, "update", #"{"feed":"c","elements":[{"id":1,"y":1},{"id":2}]}"#)
  }

  private func ask(_ method: String, _ params: String) -> Value? { harness.ask(id, method, params).last?.json }

  private func select(_ feed: String, _ at: String) -> Value? { ask("select", #"{"feed":"\#(feed)","at":\#(at)}"#) }

  @Test(arguments: [
    (
      "home",
      #"[{"feed":"c","section":0},{"feed":"one","section":2},{"feed":"none","section":3},{"feed":"a","section":4}]"#
    ),
    ("tabs", #"[{"feed":"one","section":null},{"feed":"c","section":0},{"feed":"home","section":null}]"#),
    ("mix", #"[{"feed":"a","type":"A"},{"feed":"one","type":"One"}]"#),
  ])
  func describeReportsTheFirstSectionOfEachChild(_ feed: String, _ shows: String) {
    let described = ask("describe", #"{"feed":"\#(feed)"}"#)?["result"]
    expectEqual(described?["shows"]?.text, shows)
    // The result can be defined again without effect.
    let revision = described?["revision"]
    expectEqual(ask("define", described?.text ?? "")?["error"], nil)
    expectEqual(ask("describe", #"{"feed":"\#(feed)"}"#)?["result"]?["revision"], revision)
  }

  @Test func countIsTheNumberOfRows() {
    expectEqual(ask("describe", #"{"feed":"c"}"#)?["result"]?["count"]?.int, 3)
    expectEqual(ask("describe", #"{"feed":"a"}"#)?["result"]?["shows"], nil)
  }

  /// Many rows are traced together to the feeds that they come from.
  @Test(arguments: [
    #""kind":"composed","children":["base","a"]"#, #""kind":"view","of":"base""#,
    #""kind":"view","of":"base","sort":[{"by":"$.n","order":"descending"}]"#,
    #""kind":"slots","contents":{"A":"base"},"pattern":["A"]"#,
    #""kind":"slots","contents":{"A":"long","B":"single","C":"dead"},"pattern":["A","B","A","C"],"repeatables":["A"]"#,
  ])
  func rulesApplyToManyRows(_ definition: String) {
    for (name, rule, elements) in [
      ("long", "", (0..<300).map { #"{"n":\#($0)}"# }), ("single", #","multiple":false"#, [#"{"s":1}"#, #"{"s":2}"#]),
      ("dead", #","selectable":false"#, [#"{"d":1}"#]),
    ] {
      _ = ask("define", #"{"feed":"\#(name)","kind":"array"\#(rule)}"#)
      _ = ask("insert", #"{"feed":"\#(name)","elements":[\#(elements.joined(separator: ","))]}"#)
    }
    _ = ask("define", #"{"feed":"base","kind":"composed","children":["a","single","long","dead"]}"#)
    _ = ask("define", #"{"feed":"top",\#(definition)}"#)
    let sections = ask("snapshot", #"{"feed":"top"}"#)?["result"]?["sections"]?.items ?? []
    func paths(_ member: String) -> [String] {
      sections.enumerated().flatMap { section, content in
        (content["elements"]?.items ?? []).enumerated().filter { $1[member] != nil }.map { "[\(section),\($0.offset)]" }
      }
    }
    func select(_ rows: [String]) -> Value? { self.select("top", "[\(rows.joined(separator: ","))]") }
    func selected(_ answer: Value?) -> Set<String> { Set((answer?["result"]?["selected"]?.items ?? []).map(\.text)) }
    let (long, single, dead) = (paths("n"), paths("s"), paths("d"))
    expectEqual([long.count, single.count, dead.count], [300, 2, 1])
    expectEqual(selected(select(long + [single[0]])), Set(long + [single[0]]))
    expectEqual(selected(select([single[1]])), Set(long + [single[1]]))
    expectEqual(select(long + single)?.errorCode, -32602)
    expectEqual(select(long + dead)?.errorCode, -32006)
    expectEqual(selected(select(long.suffix(100) + [single[0]])), Set(long + [single[0]]))
  }

  /// Each level finds a row by the numbers of rows below it, which it does not count again for each row.
  @Test(arguments: ["view", "composed", "slots", "mixed"]) func rowsBelowManyLevelsAreFound(_ kind: String) {
    _ = ask("define", #"{"feed":"long","kind":"array"}"#)
    var rows = (0..<300).map(String.init)
    _ = ask("insert", #"{"feed":"long","elements":[\#(rows.joined(separator: ","))]}"#)
    var below = "long"
    for level in 0..<150 {
      let feed = "level\(level)"
      let members =
        switch kind == "mixed" ? ["view", "composed", "slots"][level % 3] : kind {
        case "view": #""kind":"view","of":"\#(below)""#
        case "composed": #""kind":"composed","children":["\#(below)"]"#
        default: #""kind":"slots","contents":{"A":"\#(below)"},"pattern":["A"]"#
        }
      expectEqual(ask("define", #"{"feed":"\#(feed)",\#(members)}"#)?["error"], nil)
      below = feed
    }
    _ = ask("define", #"{"feed":"plain","kind":"view","of":"\#(below)","offset":1}"#)
    _ = ask("define", #"{"feed":"sorted","kind":"view","of":"\#(below)","sort":[{"by":"$","order":"descending"}]}"#)
    func shown(_ feed: String) -> [String] {
      let sections = ask("snapshot", #"{"feed":"\#(feed)"}"#)?["result"]?["sections"]
      return sections?.items.first?["elements"]?.items.map(\.text) ?? []
    }
    func check() {
      expectEqual(shown("plain"), Array(rows.dropFirst()))
      expectEqual(shown("sorted"), rows.sorted { Int($0) ?? 0 > Int($1) ?? 0 })
    }
    check()
    let more = (300..<350).map(String.init)
    _ = ask("insert", #"{"feed":"long","elements":[\#(more.joined(separator: ","))],"at":5}"#)
    rows.insert(contentsOf: more, at: 5)
    check()
    _ = ask("remove", #"{"feed":"long","at":[0,200,349]}"#)
    for row in [349, 200, 0] { rows.remove(at: row) }
    check()
  }

  @Test func errorNamesTheFirstParentByName() {
    for name in ["early", "zero"] { _ = ask("define", #"{"feed":"\#(name)","kind":"composed","children":["a"]}"#) }
    expectEqual(
      ask("undefine", #"{"feed":"a"}"#)?["error"]?["message"]?.string,
      "cannot change feed \"a\": \"early\" shows it; remove it there or undefine that feed first")
  }

  @Test func rowOfAFeedWithoutSelectionCannotBeSelectedInItsParents() {
    expectEqual(select("home", "[3,0]")?.errorCode, -32006)
    _ = ask("define", #"{"feed":"v","kind":"view","of":"home"}"#)
    let rows = ask("describe", #"{"feed":"v"}"#)?["result"]?["count"]?.int ?? 0
    let refused = (0..<rows).filter { select("v", "[0,\($0)]")?.errorCode == -32006 }
    expectEqual(refused, [5])
  }

  @Test func selectionOfASingleSelectionFeedIsReplaced() {
    expectEqual(select("home", "[[0,0],[2,0],[4,1]]")?["result"]?["selected"]?.text, "[[0,0],[2,0],[4,1]]")
    expectEqual(select("home", "[2,1]")?["result"]?["selected"]?.text, "[[0,0],[2,1],[4,1]]")
    expectEqual(select("home", "[1,0]")?["result"]?["selected"]?.text, "[[1,0],[2,1],[4,1]]")
    expectEqual(select("home", "[[2,0],[2,1]]")?.errorCode, -32602)
    expectEqual(select("mix", "[[0,1],[0,3]]")?.errorCode, -32602)
    expectEqual(select("mix", "[[0,0],[0,2],[0,1]]")?["result"]?["selected"]?.text, "[[0,0],[0,1],[0,2]]")
    expectEqual(select("mix", "[0,3]")?["result"]?["selected"]?.text, "[[0,0],[0,2],[0,3]]")
  }

  @Test func binHasTheSelectionRulesOfItsCollection() {
    expectEqual(select("c/x", "[[0,0],[0,1]]")?.errorCode, -32602)
    _ = ask(
      "define",
      #"{"feed":"c","kind":"collection","selectable":false,"bins":[{"name":"x"},{"name":"z"}],"replace":true}"#)
    for bin in ["c/x", "c/z"] { expectEqual(select(bin, "[0,0]")?.errorCode, -32006) }
  }

  @Test func slotsCanShowTheTypesOfElements() {
    let definition =
      #"{"feed":"mix","kind":"slots","contents":{"A":"a","One":"one"},"pattern":["A","One"],"repeatables":["A","One"],"fixed":{"0":"Z"},"types":"element""#
    let watcher = harness.connect()
    _ = harness.ask(watcher, "watch", #"{"feed":"mix"}"#)
    expectEqual(ask("define", definition + #","replace":true}"#)?["error"], nil)
    let delta = harness.take(watcher).last?.json?["params"]
    expectEqual(delta?["types"]?.text, #"["big",null,null,null,"small"]"#)
    let snapshot = ask("snapshot", #"{"feed":"mix"}"#)?["result"]?["sections"]?.items.first
    expectEqual(snapshot?["types"]?.text, #"["big",null,null,null,"small"]"#)
    let frames = harness.ask(harness.connect(), "watch", #"{"feed":"mix"}"#)
    expectEqual(frames.last?.json?["params"]?["types"]?.text, #"["big",null,null,null,"small"]"#)
    _ = ask("replace", #"{"feed":"a","at":[1],"element":{"k":"big"}}"#)
    expectEqual(harness.take(watcher).last?.json?["params"]?["types"]?.text, #"["big"]"#)
    expectEqual(ask("describe", #"{"feed":"mix"}"#)?["result"]?["types"]?.string, "element")
    expectEqual(
      ask("define", definition.replacingLast("element", with: "own") + "}")?.errorData?["member"]?.string, "types")
    _ = ask("define", definition.replacingLast("element", with: "content") + #","replace":true}"#)
    expectEqual(ask("describe", #"{"feed":"mix"}"#)?["result"]?["types"], nil)
    expectEqual(harness.take(watcher).last?.json?["params"]?["types"]?.text, #"["A","One","A","One","A"]"#)
  }
}

extension String {
  fileprivate func replacingLast(_ word: String, with other: String) -> String {
    var text = self
    if let range = text.ranges(of: word).last { text.replaceSubrange(range, with: other) }
    return text
  }
}
