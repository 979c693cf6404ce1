import FeedModel
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// Nested providers cannot exceed the limits on repetition, levels and sections, in whatever order they are built.
struct GrowthTests {
  private func ask(_ harness: EngineHarness, _ client: ConnectionID, _ method: String, _ params: String) -> String {
    harness.ask(client, method, params).first ?? ""
  }

  /// A ladder, built upwards, in which every rung shows the rung below twice; the kinds of the sides and of the rungs.
  @Test(arguments: [("composed", "composed"), ("composed", "slots"), ("slots", "slots"), ("segmented", "composed")])
  func ladderIsRefusedAtMaxRepeats(side: String, rung: String) {
    func definition(_ name: String, _ kind: String, _ children: [String]) -> String {
      let parts = children.enumerated().map { kind == "slots" ? "\"t\($0)\":\"\($1)\"" : "\"\($1)\"" }.joined(
        separator: ",")
      let pattern = children.indices.map { "\"t\($0)\"" }.joined(separator: ",")
      return kind == "slots"
        ? "{\"feed\":\"\(name)\",\"kind\":\"slots\",\"contents\":{\(parts)},\"pattern\":[\(pattern)]}"
        : "{\"feed\":\"\(name)\",\"kind\":\"\(kind)\",\"children\":[\(parts)]}"
    }
    let harness = EngineHarness()
    let client = harness.connect()
    _ = ask(harness, client, "define", #"{"feed":"f0","kind":"array"}"#)
    var refused: (level: Int, answer: Value?)?
    for level in 0..<70 where refused == nil {
      for (name, kind, children) in [
        ("h\(level)", side, ["f\(level)"]), ("f\(level + 1)", rung, ["f\(level)", "h\(level)"]),
      ] {
        let answer = ask(harness, client, "define", definition(name, kind, children))
        if answer.json?["result"] == nil { refused = (level, answer.json) }
      }
    }
    // A feed may be shown 2^6 = 64 times.
    expect(refused?.level == 6 && refused?.answer?.errorCode == -32007)
    expectEqual(refused?.answer?.errorData?["limit"]?.string, "maxRepeats")
    expect(ask(harness, client, "insert", #"{"feed":"f0","elements":[1,2]}"#).json?["result"]?["added"] != nil)
    expect(ask(harness, client, "verify", #"{"feed":"f6"}"#).json?["result"]?["digest"] != nil)
  }

  /// The same ladder built downwards: no row is shown until the last child is inserted.
  @Test func ladderBuiltDownwardsIsRefusedAtMaxRepeats() {
    let harness = EngineHarness()
    let client = harness.connect()
    for level in 0...40 {
      for side in ["f", "h"] {
        _ = ask(harness, client, "define", #"{"feed":"\#(side)\#(level)","kind":"composed","children":[]}"#)
      }
    }
    var refused = 0
    for level in (0..<40).reversed() {
      for (parent, child) in [
        ("f\(level + 1)", "f\(level)"), ("f\(level + 1)", "h\(level)"), ("h\(level)", "f\(level)"),
      ] {
        let answer = ask(harness, client, "insertChild", #"{"feed":"\#(parent)","child":"\#(child)"}"#)
        if answer.json?.errorData?["limit"]?.string == "maxRepeats" {
          refused += 1
        } else {
          expect(answer.json?["result"] != nil)
        }
      }
    }
    expect(refused > 0)
    _ = ask(harness, client, "define", #"{"feed":"a","kind":"array"}"#)
    expect(ask(harness, client, "insertChild", #"{"feed":"f0","child":"a"}"#).json?["result"]?["sections"] != nil)
    expect(ask(harness, client, "insert", #"{"feed":"a","elements":[1]}"#).json?["result"]?["added"] != nil)
    expect(ask(harness, client, "verify", #"{"feed":"f40"}"#).json?["result"]?["digest"] != nil)
  }

  /// A refused request leaves no lower bound of repeats behind, whether it was refused at once or rolled back, and in
  /// whatever order a rollback links feeds again.
  @Test(
    arguments: [
      [#"{"method":"undefine","params":{"feed":"missing"}}"#],
      [
        #"{"method":"define","params":{"feed":"p","kind":"composed","children":["x","f"],"replace":true}}"#,
        #"{"method":"undefine","params":{"feed":"missing"}}"#,
      ],
      [
        #"{"method":"define","params":{"feed":"p","kind":"composed","children":["f","x"],"replace":true}}"#,
        #"{"method":"insertChild","params":{"feed":"p","child":"c1"}}"#,
        #"{"method":"undefine","params":{"feed":"missing"}}"#,
      ],
    ])
  func refusedRequestsKeepTheCountOfRepeats(_ more: [String]) {
    let harness = EngineHarness()
    let client = harness.connect()
    for name in ["a", "x"] { _ = ask(harness, client, "define", #"{"feed":"\#(name)","kind":"array"}"#) }
    for number in 0..<40 {
      _ = ask(harness, client, "define", #"{"feed":"c\#(number)","kind":"composed","children":["a"]}"#)
    }
    let children = (0..<40).map { #""c\#($0)""# }.joined(separator: ",")
    _ = ask(harness, client, "define", #"{"feed":"f","kind":"composed","children":[\#(children)]}"#)
    _ = ask(harness, client, "define", #"{"feed":"p","kind":"composed","children":["f"]}"#)
    let fewer = #"{"method":"define","params":{"feed":"f","kind":"composed","children":["x"],"replace":true}}"#
    let operations = ([fewer] + more).joined(separator: ",")
    let twice = #"{"feed":"q","kind":"composed","children":["p","f"]}"#
    for _ in 0..<30 {
      let answer = ask(harness, client, "transaction", #"{"ops":[\#(operations)]}"#)
      expectEqual(answer.json?.errorCode, -32000)
      expectEqual(ask(harness, client, "define", twice).json?.errorData?["limit"]?.string, "maxRepeats")
    }
    // The same count allows what is within the limit.
    let once = #"{"feed":"q","kind":"composed","children":["p","x"]}"#
    expect(ask(harness, client, "define", once).json?["result"] != nil)
  }

  /// A wide and deep tree that shows every feed once is accepted.
  @Test func treesWithoutRepetitionAreAccepted() {
    let harness = EngineHarness()
    let client = harness.connect()
    var level = (0..<256).map { "a\($0)" }
    for name in level { _ = ask(harness, client, "define", #"{"feed":"\#(name)","kind":"array"}"#) }
    var depth = 0
    while level.count > 1 {
      depth += 1
      level = stride(from: 0, to: level.count, by: 2).map { place in
        let name = "p\(depth).\(place)"
        let answer = ask(
          harness, client, "define",
          #"{"feed":"\#(name)","kind":"composed","children":["\#(level[place])","\#(level[place + 1])"]}"#)
        expect(answer.json?["result"] != nil)
        return name
      }
    }
    for number in 0..<300 {
      let below = number == 0 ? level[0] : "d\(number - 1)"
      let answer = ask(harness, client, "define", #"{"feed":"d\#(number)","kind":"composed","children":["\#(below)"]}"#)
      expect(answer.json?["result"] != nil)
    }
    let sections = ask(harness, client, "describe", #"{"feed":"d299"}"#).json?["result"]?["sections"]?.items
    expectEqual(sections?.contains { $0["name"]?.string == "a255" }, true)
  }

  @Test func numberOfLevelsIsLimited() {
    let harness = EngineHarness { $0.maxLevels = 3 }
    let client = harness.connect()
    func limit(_ method: String, _ params: String) -> String? {
      ask(harness, client, method, params).json?.errorData?["limit"]?.string
    }
    for name in ["a", "b"] { _ = ask(harness, client, "define", #"{"feed":"\#(name)","kind":"array"}"#) }
    _ = ask(harness, client, "define", #"{"feed":"k","kind":"collection","bins":[{"name":"x"}]}"#)
    expectEqual(limit("define", #"{"feed":"l1","kind":"composed","children":["a","k/x"]}"#), nil)
    expectEqual(limit("define", #"{"feed":"l2","kind":"segmented","children":["l1"],"current":0}"#), nil)
    expectEqual(limit("define", #"{"feed":"l3","kind":"composed","children":["l2"]}"#), nil)
    expectEqual(limit("define", #"{"feed":"l4","kind":"composed","children":["b","l3"]}"#), "maxLevels")
    expectEqual(limit("define", #"{"feed":"low","kind":"composed","children":["b"]}"#), nil)
    expectEqual(limit("insertChild", #"{"feed":"l1","child":"low"}"#), "maxLevels", "l1 is two levels deep already")
    expectEqual(limit("insertChild", #"{"feed":"l1","child":"b"}"#), nil)
    // A removed child no longer counts.
    expectEqual(limit("insertChild", #"{"feed":"l2","child":"low"}"#), nil)
    expectEqual(limit("removeChild", #"{"feed":"l3","child":"l2"}"#), nil)
    expectEqual(limit("insertChild", #"{"feed":"l1","child":"low"}"#), nil)
  }

  @Test func numberOfSectionsIsLimited() {
    let harness = EngineHarness { $0.maxSections = 3 }
    let client = harness.connect()
    func refuses(_ method: String, _ params: String) -> Bool {
      let before = ask(harness, client, "feeds", "{}")
      let answer = ask(harness, client, method, params)
      return answer.json?.errorData?["limit"]?.string == "maxSections" && ask(harness, client, "feeds", "{}") == before
    }
    for name in ["a", "b", "c", "d"] { _ = ask(harness, client, "define", #"{"feed":"\#(name)","kind":"array"}"#) }
    _ = ask(harness, client, "define", #"{"feed":"k","kind":"collection","bins":[{"name":"x"},{"name":"y"}]}"#)
    _ = ask(harness, client, "define", #"{"feed":"low","kind":"composed","children":["a","b"]}"#)
    _ = ask(harness, client, "define", #"{"feed":"tabs","kind":"segmented","children":["c","low"],"current":0}"#)
    _ = ask(harness, client, "define", #"{"feed":"top","kind":"composed","children":["tabs","k"]}"#)
    expect(refuses("define", #"{"feed":"many","kind":"composed","children":["a","b","c","d"]}"#))
    expect(refuses("activate", #"{"feed":"tabs","child":1}"#))
    expect(refuses("define", #"{"feed":"tabs","kind":"segmented","children":["c","low"],"current":1,"replace":true}"#))
    expect(refuses("insertChild", #"{"feed":"top","child":"d"}"#))
    expect(
      refuses(
        "define", #"{"feed":"k","kind":"collection","bins":[{"name":"x"},{"name":"y"},{"name":"z"}],"replace":true}"#))
    expect(
      refuses(
        "transaction",
        #"{"ops":[{"method":"insertChild","params":{"feed":"low","child":"d"}},{"method":"insertChild","params":{"feed":"low","child":"c"}}]}"#
      ))
    expect(ask(harness, client, "insertChild", #"{"feed":"low","child":"d"}"#).json?["result"] != nil)
    expect(ask(harness, client, "activate", #"{"feed":"tabs","child":-1}"#).json?["result"] != nil)
    expect(ask(harness, client, "insertChild", #"{"feed":"top","child":"d"}"#).json?["result"] != nil)
    // Slots have one section, whatever they show.
    expect(
      ask(
        harness, client, "define", #"{"feed":"s","kind":"slots","contents":{"A":"low","B":"top"},"pattern":["A","B"]}"#
      )
      .json?["result"] != nil)
  }

  /// A transaction stops as soon as its answer exceeds a frame.
  @Test func transactionStopsWhenItsAnswerExceedsAFrame() {
    let harness = EngineHarness { $0.maxFrame = 1 << 16 }
    let client = harness.connect()
    _ = ask(harness, client, "define", #"{"feed":"a","kind":"array"}"#)
    _ = ask(
      harness, client, "insert", #"{"feed":"a","elements":[\#((0..<2000).map(String.init).joined(separator: ","))]}"#)
    _ = ask(harness, client, "define", #"{"feed":"c","kind":"composed","children":["a"]}"#)
    let pair =
      #"{"method":"removeChild","params":{"feed":"c","at":0}},{"method":"insertChild","params":{"feed":"c","child":"a"}}"#
    let operations = Array(repeating: pair, count: 400).joined(separator: ",")
    let before = ask(harness, client, "sync", "{}")
    expectEqual(ask(harness, client, "transaction", #"{"ops":[\#(operations)]}"#).json?.errorCode, -32007)
    harness.send(client, #"{"jsonrpc":"2.0","method":"transaction","params":{"ops":[\#(operations)]}}"#)
    expect(harness.take(client).isEmpty)
    expectEqual(ask(harness, client, "sync", "{}"), before)
  }
}
