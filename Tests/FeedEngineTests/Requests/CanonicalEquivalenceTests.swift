import FeedModel
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// Texts are compared by their bytes: "é" in one code point is another text than "é" in two, which Swift's `String` takes for
/// equal.
struct CanonicalEquivalenceTests {
  private static let composed = #"\u00e9"#
  private static let decomposed = #"e\u0301"#

  private let harness = EngineHarness()
  private let id: ConnectionID

  init() {
    id = harness.connect()
    for feed in ["a", "b"] {
      _ = harness.ask(id, "define", #"{"feed":"\#(feed)","kind":"array"}"#)
      _ = harness.ask(id, "insert", #"{"feed":"\#(feed)","element":"\#(feed)"}"#)
    }
  }

  private func ask(_ method: String, _ params: String) -> Value? {
    harness.ask(id, method, params).compactMap(\.json).last
  }

  /// The delta that a watcher of `feed` receives for a definition; nil if there is none.
  private func delta(of feed: String, _ definition: String) -> Value? {
    _ = harness.ask(id, "watch", #"{"feed":"\#(feed)"}"#)
    _ = harness.take(id)
    let messages = harness.ask(id, "define", definition).compactMap(\.json)
    _ = harness.ask(id, "unwatch", #"{"feed":"\#(feed)"}"#)
    expect(messages.contains { $0["result"] != nil })
    return messages.first { $0["method"]?.string == "delta" }?["params"]
  }

  /// Whether the description of a feed contains a text.
  private func describes(_ feed: String, _ text: String) -> Bool {
    (ask("describe", #"{"feed":"\#(feed)"}"#)?["result"]?.text ?? "").utf8.contains(text.utf8)
  }

  /// Definitions with one text, wherever one stands.
  @Test(arguments: [
    #""kind":"collection","id":"$['TEXT']""#,
    #""kind":"collection","type":"$['TEXT']""#,
    #""kind":"collection","section":"$['TEXT']""#,
    #""kind":"collection","retain":{"until":"$['TEXT']"}"#,
    #""kind":"collection","bins":[{"name":"x","filter":"@.n == 'TEXT'"}]"#,
    #""kind":"collection","bins":[{"name":"x","sort":[{"by":"$['TEXT']"}]}]"#,
    #""kind":"array","id":"$['TEXT']""#,
    #""kind":"array","type":"$['TEXT']""#,
    #""kind":"view","of":"a","filter":"@.n == 'TEXT'""#,
    #""kind":"view","of":"a","sort":[{"by":"$['TEXT']"}]"#,
    #""kind":"slots","contents":{"TEXT":"a"},"pattern":[]"#,
    #""kind":"slots","contents":{},"pattern":["TEXT"]"#,
    #""kind":"slots","contents":{},"pattern":[],"header":["TEXT"]"#,
    #""kind":"slots","contents":{},"pattern":[],"repeatables":["TEXT"]"#,
    #""kind":"slots","contents":{},"pattern":[],"default":"TEXT""#,
    #""kind":"slots","contents":{},"pattern":[],"fixed":{"1":"TEXT"}"#,
  ])
  func definitionWithAnotherTextIsAnother(_ members: String) {
    func params(_ text: String, replace: Bool) -> String {
      #"{"feed":"f",\#(members.replacing("TEXT", with: text)),"replace":\#(replace)}"#
    }
    expect(ask("define", params(Self.composed, replace: false))?["result"] != nil)
    expect(describes("f", "\u{e9}") && !describes("f", "e\u{301}"))
    expectEqual(ask("define", params(Self.decomposed, replace: false))?.errorCode, -32001)
    expect(ask("define", params(Self.decomposed, replace: true))?["result"] != nil)
    expect(!describes("f", "\u{e9}") && describes("f", "e\u{301}"))
  }

  @Test func binsWithDifferentSortsHaveDifferentOrders() {
    _ = ask(
      "define",
      #"{"feed":"k","kind":"collection","bins":[{"name":"x","sort":[{"by":"$['\#(Self.composed)']"}]},"#
        + #"{"name":"y","sort":[{"by":"$['\#(Self.decomposed)']"}]}]}"#)
    for (number, other) in [(1, 2), (2, 1)] {
      _ = ask(
        "update",
        #"{"feed":"k","element":{"id":\#(number),"\#(Self.composed)":\#(number),"\#(Self.decomposed)":\#(other)}}"#)
    }
    let sections = ask("snapshot", #"{"feed":"k"}"#)?["result"]?["sections"]?.items ?? []
    expectEqual(sections.map { $0["elements"]?.items.map { $0["id"]?.int } }, [[1, 2], [2, 1]])
  }

  @Test func typesOfSlotsAreToldApart() {
    _ = ask(
      "define",
      #"{"feed":"s","kind":"slots","contents":{"\#(Self.composed)":"a","\#(Self.decomposed)":"b"},"#
        + #""pattern":["\#(Self.composed)","\#(Self.decomposed)"]}"#)
    let rows = ask("snapshot", #"{"feed":"s"}"#)?["result"]?["sections"]?.items.first?["elements"]?.items
    expectEqual(rows?.map(\.text), [#""a""#, #""b""#])
  }

  /// The rows of a type with another name are other rows.
  @Test func redefinedTypesOfSlotsHaveTheirNewNames() {
    func definition(_ type: String) -> String {
      #"{"feed":"s","kind":"slots","contents":{"\#(type)":"a"},"pattern":["\#(type)"],"replace":true}"#
    }
    _ = ask("define", definition(Self.composed))
    let change = delta(of: "s", definition(Self.decomposed))
    expect(change?["deleted"]?.text == "[[0,0]]" && change?["added"]?.text == "[[0,0]]")
    let types = ask("snapshot", #"{"feed":"s"}"#)?["result"]?["sections"]?.items.first?["types"]?.items
    expectEqual(types?.map { $0.string?.utf8.count }, [3])
  }

  @Test func sectionsByValueWithDifferentNamesAreDifferent() {
    _ = ask("define", #"{"feed":"k","kind":"collection","section":"$.a"}"#)
    _ = ask("update", #"{"feed":"k","element":{"id":1,"a":"\#(Self.composed)","b":"\#(Self.decomposed)"}}"#)
    let change = delta(of: "k", #"{"feed":"k","kind":"collection","section":"$.b","replace":true}"#)?["sections"]
    expectEqual(change?["deleted"]?.text, "[0]")
    expectEqual(change?["added"]?.items.count, 1)
    // Two sections whose names Swift takes for equal stay as they are.
    _ = ask("update", #"{"feed":"k","element":{"id":2,"b":"\#(Self.composed)"}}"#)
    let same = #"{"feed":"k","kind":"collection","section":"$.b","exclusive":true,"replace":true}"#
    expectEqual(delta(of: "k", same)?.text, nil)
  }

  @Test func sectionsOfManagedRowsAreToldApart() {
    var rows = ManagedRows()
    for section in ["\u{e9}", "e\u{301}", "\u{e9}"] {
      "{}".utf8.withContiguousStorageIfAvailable { rows.append(UnsafeRawBufferPointer($0), section: section) }
    }
    expectEqual(rows.sections.map(\.utf8.count), [2, 3])
  }

  /// The Kelvin sign is canonically equivalent to K.
  @Test func feedIsNotFoundByAnEquivalentName() {
    _ = ask("define", #"{"feed":"K","kind":"collection","bins":[{"name":"K"}]}"#)
    for name in [#"\u212a"#, #"K/\u212a"#, #"\u212a/K"#] {
      expectEqual(ask("describe", #"{"feed":"\#(name)"}"#)?.errorCode, -32000)
    }
    expect(ask("describe", #"{"feed":"K/K"}"#)?["result"] != nil)
  }

  @Test(arguments: [
    ("activate", #""child":"NAME""#), ("removeChild", #""child":"NAME""#),
    ("insertChild", #""child":"b","before":"NAME""#), ("insertChild", #""child":"b","after":"NAME""#),
  ])
  func childIsNotFoundByAnEquivalentName(_ method: String, _ params: String) {
    _ = ask("define", #"{"feed":"K","kind":"collection","bins":[{"name":"K"}]}"#)
    _ = ask("define", #"{"feed":"t","kind":"segmented","children":["a","K","K/K"]}"#)
    for name in [#"\u212a"#, #"K/\u212a"#, #"\u212a/K"#] {
      let params = #"{"feed":"t",\#(params.replacing("NAME", with: name))}"#
      expectEqual(ask(method, params)?.errorCode, -32000)
      let operation = #"{"ops":[{"method":"\#(method)","params":\#(params)}]}"#
      let answer = ask("transaction", operation)
      expect(answer?.errorCode == -32000 && answer?.errorData?["op"]?.int == 0)
    }
    expect(ask(method, #"{"feed":"t",\#(params.replacing("NAME", with: "K/K"))}"#)?["result"] != nil)
  }

  /// Different lone surrogates would become the same text.
  @Test(arguments: [
    (#""kind":"collection","id":"$['TEXT']""#, "id"),
    (#""kind":"array","type":"$['TEXT']""#, "type"),
    (#""kind":"array","retain":{"until":"$['TEXT']"}"#, "retain.until"),
    (#""kind":"collection","bins":[{"name":"x","filter":"@.n == 'TEXT'"}]"#, "bins[0].filter"),
    (#""kind":"view","of":"a","sort":[{"by":"$"},{"by":"$['TEXT']"}]"#, "sort[1].by"),
  ])
  func pathsWithLoneSurrogatesAreRefused(_ members: String, _ member: String) {
    func define(_ text: String) -> Value? {
      ask("define", #"{"feed":"f",\#(members.replacing("TEXT", with: text)),"animation":"\ud800"}"#)
    }
    let answer = define(#"a\ud800"#)
    expectEqual(answer?.errorCode, -32602)
    expectEqual(answer?.errorData?["member"]?.string, member)
    expect(define(#"a\ud83d\ude00"#)?["result"] != nil)
  }

  @Test func queryWithALoneSurrogateIsRefused() {
    let answer = ask("query", #"{"feed":"a","path":"$[?@ == '\ud800']"}"#)
    expectEqual(answer?.errorCode, -32602)
    expectEqual(answer?.errorData?["member"]?.string, "path")
  }

  @Test(arguments: [
    ("delete", #""where":"@.id == '\ud800'""#), ("delete", #""id":"\ufffd","where":"@.id == '\ud800'""#),
    ("update", #""element":{"id":"\ufffd","n":1},"where":"@.id == '\ud800'""#),
    ("patch", #""id":"\ufffd","patch":{"n":1},"where":"@.id == '\ud800'""#),
  ])
  func whereWithALoneSurrogateIsRefused(_ method: String, _ params: String) throws {
    let harness = EngineHarness(isDurable: true)
    let id = harness.connect()
    _ = harness.ask(id, "define", #"{"feed":"c","kind":"collection"}"#)
    _ = harness.ask(id, "update", #"{"feed":"c","element":{"id":"\ufffd"}}"#)
    let answer = harness.ask(id, method, #"{"feed":"c",\#(params)}"#).compactMap(\.json).last
    expectEqual(answer?.errorCode, -32602)
    expectEqual(answer?.errorData?["member"]?.string, "where")
    // A log of earlier rules has requests that were executed.
    for (rules, revision) in [(6, 3), (ExecutionRules.current, 2)] {
      let again = EngineHarness(isDurable: true)
      for batch in harness.stored { try again.engine.replay(batch, rules: rules) }
      expectEqual(again.engine.catalog.revision, UInt64(revision), "rules \(rules)")
    }
  }

  /// A position that is written in two ways would name two types.
  @Test(arguments: ["01", "+1", "-0", "-01", "00"]) func positionsAreWrittenAlike(_ position: String) {
    func define(_ position: String) -> Value? {
      ask("define", #"{"feed":"s","kind":"slots","contents":{},"pattern":[],"fixed":{"\#(position)":"t"}}"#)
    }
    let answer = define(position)
    expectEqual(answer?.errorCode, -32602)
    expectEqual(answer?.errorData?["member"]?.string, "fixed.\(position)")
    for plain in ["0", "1", "-1", "10"] {
      expect(define(plain)?["result"] != nil)
      _ = ask("undefine", #"{"feed":"s"}"#)
    }
  }

  /// Different lone surrogates would become the same text.
  @Test(arguments: [
    (#""contents":{"\ud800":"a"},"pattern":[]"#, "contents"),
    (#""contents":{},"pattern":["x","\ud800"]"#, "pattern[1]"),
    (#""contents":{},"pattern":[],"header":["\udfff"]"#, "header[0]"),
    (#""contents":{},"pattern":[],"repeatables":["a\ud800b"]"#, "repeatables[0]"),
    (#""contents":{},"pattern":[],"default":"\udc00\ud800""#, "default"),
    (#""contents":{},"pattern":[],"fixed":{"3":"\ud800"}"#, "fixed.3"),
  ])
  func typesWithLoneSurrogatesAreRefused(_ members: String, _ member: String) {
    let answer = ask("define", #"{"feed":"s","kind":"slots",\#(members)}"#)
    expectEqual(answer?.errorCode, -32602)
    expectEqual(answer?.errorData?["member"]?.string, member)
    // A pair is one character.
    var whole = members
    for lone in [#"\ud800"#, #"\udfff"#, #"\udc00"#] { whole = whole.replacing(lone, with: #"\ud83d\ude00"#) }
    let paired = ask("define", #"{"feed":"s","kind":"slots",\#(whole)}"#)
    expect(paired?["result"] != nil)
  }
}
