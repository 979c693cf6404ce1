import FeedModel
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// What views and slots cost the users that push below them.
@Suite("Steps of feeds above") struct DerivedStepsTests {
  /// A filter that visits the members of an element several times.
  private static let slow = "@..[?@ == 'x']"

  private static func limits(_ change: (inout Limits) -> Void) -> Limits {
    var limits = Limits()
    change(&limits)
    return limits
  }

  /// The limit that refuses a request; nil if it succeeds.
  private func limit(
    _ harness: EngineHarness, _ client: ConnectionID, _ method: String, _ params: String
  ) -> String? {
    let answer = harness.ask(client, method, params).first?.json
    if answer?["result"] != nil { return nil }
    return answer?.errorData?["limit"]?.string ?? answer?.text ?? "no answer"
  }

  private func view(_ name: String, of source: String, filter: String = Self.slow, replaces: Bool = false) -> String {
    #"{"feed":"\#(name)","kind":"view","of":"\#(source)","filter":"\#(filter)","replace":\#(replaces)}"#
  }

  @Test("the views over one feed are limited by the steps that they may take")
  func views() {
    let harness = EngineHarness(limits: Self.limits { $0.maxDerivedSteps = 2 * 51_000 + 100 })
    let client = harness.connect()
    expectEqual(limit(harness, client, "define", #"{"feed":"a","kind":"array"}"#), nil)
    expectEqual(limit(harness, client, "define", view("v", of: "a")), nil)
    expectEqual(limit(harness, client, "define", view("w", of: "v")), nil)
    expectEqual(limit(harness, client, "define", view("x", of: "a")), "maxDerivedSteps")
    expectEqual(limit(harness, client, "define", view("x", of: "w")), "maxDerivedSteps", "a view of a view follows too")
    // A redefinition replaces the steps of the former definition.
    expectEqual(limit(harness, client, "define", view("w", of: "v", filter: "@.n > 3", replaces: true)), nil)
    expectEqual(limit(harness, client, "define", view("x", of: "a", filter: "@.n > 3")), nil)
    expectEqual(limit(harness, client, "undefine", #"{"feed":"w"}"#), nil)
    expectEqual(limit(harness, client, "undefine", #"{"feed":"x"}"#), nil)
    expectEqual(limit(harness, client, "define", view("x", of: "a")), nil)
    expectEqual(limit(harness, client, "insert", #"{"feed":"a","element":["x"]}"#), nil)
  }

  @Test("views of all bins count together, and so do those of feeds that show a child")
  func bins() {
    let harness = EngineHarness(limits: Self.limits { $0.maxDerivedSteps = 2 * 52_000 })
    let client = harness.connect()
    let collection = #"{"feed":"c","kind":"collection","bins":[{"name":"x"},{"name":"y"}]}"#
    expectEqual(limit(harness, client, "define", collection), nil)
    expectEqual(limit(harness, client, "define", view("v", of: "c/x")), nil)
    expectEqual(limit(harness, client, "define", #"{"feed":"p","kind":"composed","children":[]}"#), nil)
    expectEqual(limit(harness, client, "define", view("w", of: "p")), nil)
    expectEqual(limit(harness, client, "insertChild", #"{"feed":"p","child":"c/y"}"#), nil)
    expectEqual(limit(harness, client, "insertChild", #"{"feed":"p","child":"c/x"}"#), "maxDerivedSteps")
    expectEqual(limit(harness, client, "define", view("z", of: "c")), "maxDerivedSteps")
    expectEqual(limit(harness, client, "removeChild", #"{"feed":"p","child":"c/y"}"#), nil)
    expectEqual(limit(harness, client, "define", view("z", of: "c")), nil)
    expectEqual(limit(harness, client, "insertChild", #"{"feed":"p","child":"c/y"}"#), "maxDerivedSteps")
  }

  @Test("slots count by the size of their layout")
  func slots() {
    let harness = EngineHarness(limits: Self.limits { $0.maxDerivedSteps = 3000 })
    let client = harness.connect()
    expectEqual(limit(harness, client, "define", #"{"feed":"a","kind":"array"}"#), nil)
    func slots(_ name: String, _ entries: Int) -> String {
      let pattern = Array(repeating: "\"x\"", count: entries).joined(separator: ",")
      return #"{"feed":"\#(name)","kind":"slots","contents":{"x":"a"},"pattern":[\#(pattern)]}"#
    }
    expectEqual(limit(harness, client, "define", slots("s", 2500)), "maxDerivedSteps")
    expectEqual(limit(harness, client, "define", slots("s", 900)), nil)
    expectEqual(limit(harness, client, "define", slots("t", 200)), "maxDerivedSteps")
    expectEqual(limit(harness, client, "define", slots("t", 50)), nil)
  }

  @Test("an element for which the filter of a view takes too many steps is not shown, and is stored")
  func oneElement() {
    let harness = EngineHarness(limits: Self.limits { $0.maxViewSteps = 1000 })
    let client = harness.connect()
    expectEqual(limit(harness, client, "define", #"{"feed":"a","kind":"array"}"#), nil)
    expectEqual(limit(harness, client, "define", view("v", of: "a")), nil)
    let long = Array(repeating: "1", count: 2000).joined(separator: ",")
    expectEqual(limit(harness, client, "insert", #"{"feed":"a","element":[\#(long),"x"]}"#), nil)
    expectEqual(limit(harness, client, "insert", #"{"feed":"a","element":["x"]}"#), nil)
    expectEqual(harness.ask(client, "describe", #"{"feed":"a"}"#).first?.json?["result"]?["count"]?.int, 2)
    expectEqual(harness.ask(client, "describe", #"{"feed":"v"}"#).first?.json?["result"]?["count"]?.int, 1)
  }

  @Test("a request of many rows is charged for the views above, and one row never is")
  func manyRows() throws {
    let limits = Self.limits { $0.maxRequestSteps = 20_000 }
    let harness = EngineHarness(limits: limits, isDurable: true)
    let client = harness.connect()
    for feed in ["a", "b"] {
      expectEqual(limit(harness, client, "define", #"{"feed":"\#(feed)","kind":"array"}"#), nil)
    }
    expectEqual(limit(harness, client, "define", view("v", of: "a")), nil)
    let element = "[" + Array(repeating: "1", count: 400).joined(separator: ",") + "]"
    func elements(_ count: Int) -> String { Array(repeating: element, count: count).joined(separator: ",") }
    for feed in ["a", "b"] {
      let many = #"{"feed":"\#(feed)","elements":[\#(elements(60))]}"#
      expectEqual(limit(harness, client, "insert", many), (feed == "a" ? "maxRequestSteps" : nil))
      expectEqual(limit(harness, client, "insert", #"{"feed":"\#(feed)","elements":[\#(elements(5))]}"#), nil)
    }
    let one = #"{"method":"insert","params":{"feed":"a","element":\#(element)}}"#
    let ops = Array(repeating: one, count: 60).joined(separator: ",")
    expectEqual(harness.ask(client, "transaction", #"{"ops":[\#(ops)]}"#).first?.json?.errorCode, -32007)
    for _ in 0..<60 { expectEqual(limit(harness, client, "insert", #"{"feed":"a","element":\#(element)}"#), nil) }
    // A feed with many rows comes to be shown below a view.
    expectEqual(
      limit(harness, client, "define", #"{"feed":"t","kind":"segmented","children":["a"],"current":-1}"#), nil)
    expectEqual(limit(harness, client, "define", view("w", of: "t")), nil)
    expectEqual(limit(harness, client, "activate", #"{"feed":"t","child":"a"}"#), "maxRequestSteps")
    expectEqual(limit(harness, client, "insertChild", #"{"feed":"t","child":"b"}"#), nil)
    let again = EngineHarness(limits: limits)
    for batch in harness.stored { try again.engine.replay(batch) }
    expectEqual(again.engine.catalog.revision, harness.engine.catalog.revision)
    // Requests of a journal from before these limits were not charged.
    var former = limits
    for limit in Limits.added where limit != \.maxRequestSteps { former[keyPath: limit] = .max }
    let older = EngineHarness(limits: former)
    let user = older.connect()
    expectEqual(self.limit(older, user, "define", #"{"feed":"a","kind":"array"}"#), nil)
    expectEqual(self.limit(older, user, "define", view("v", of: "a")), nil)
    expectEqual(self.limit(older, user, "insert", #"{"feed":"a","elements":[\#(elements(60))]}"#), nil)
  }
}
