import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

@Suite("Keys and names of sections by value")
struct SectionKeyTests {
  private let harness = EngineHarness(isDurable: true)
  private let client: ConnectionID

  init() {
    client = harness.connect()
    for definition in [
      #"{"feed":"s","kind":"collection","section":"$.k"}"#,
      #"{"feed":"bins","kind":"collection","bins":[{"name":"1"},{"name":"true"}]}"#,
      #"{"feed":"home","kind":"composed","children":["s","bins"]}"#,
      #"{"feed":"tabs","kind":"segmented","children":["s"]}"#,
      #"{"feed":"view","kind":"view","of":"s"}"#,
    ] { _ = harness.ask(client, "define", definition) }
  }

  private func ask(_ method: String, _ params: String, _ harness: EngineHarness? = nil) -> [Value] {
    let harness = harness ?? self.harness
    return harness.ask(harness === self.harness ? client : harness.connect(), method, params).compactMap { Value($0) }
  }

  private func sections(_ method: String, _ feed: String) -> [String] {
    let list = ask(method, #"{"feed":"\#(feed)"}"#).first?["result"]?["sections"]?.items ?? []
    return list.map { "\($0["name"]?.text ?? "-") \($0["key"]?.text ?? "-")" }
  }

  /// Values, and the names and keys of their sections, in order.
  private static let cases = [
    ("false", #""s/false" false"#), ("true", #""s/true" true"#), ("1.0", #""s/1" 1"#),
    ("15e299", #""s/1.5e300" 1.5e300"#),
    (#""\"x""#, #""s/\"\\\"x\"" "\"x""#), (#""1""#, #""s/\"1\"" "1""#), (#""1.0""#, #""s/1.0" "1.0""#),
    (#""\u00e9""#.replacing("\\u00e9", with: "a"), #""s/a" "a""#), (#""false""#, #""s/\"false\"" "false""#),
    (#""null""#, #""s/null" "null""#), (#""true""#, #""s/\"true\"" "true""#),
    ("null", #""s" null"#),
  ]

  private func fill() {
    let elements = Self.cases.enumerated().map { #"{"id":\#($0),"k":\#($1.0)}"# }
    _ = ask("update", #"{"feed":"s","elements":[\#(elements.joined(separator: ","))]}"#)
  }

  @Test("each value has a name and a key of its own, wherever sections are listed")
  func lists() throws {
    fill()
    let keyed = Self.cases.map(\.1)
    let all = keyed + [#""bins/1" -"#, #""bins/true" -"#]
    for method in ["describe", "snapshot", "watch"] {
      expectEqual(sections(method, "s"), keyed)
      expectEqual(sections(method, "tabs"), keyed)
      expectEqual(sections(method, "home"), all)
      expectEqual(sections(method, "view"), [#""view" -"#])
    }
    let feeds = ask("feeds", "{}").first?["result"]?["feeds"]?.items ?? []
    let home = feeds.first { $0["feed"]?.string == "home" }?["sections"]?.items ?? []
    expectEqual(home.map { "\($0["name"]?.text ?? "-") \($0["key"]?.text ?? "-")" }, all)
  }

  @Test("changes and resets have the keys of added sections, and so do resumed and replayed watches")
  func changes() throws {
    let watcher = harness.connect()
    for feed in ["s", "home"] { _ = harness.ask(watcher, "watch", #"{"feed":"\#(feed)"}"#) }
    let before = harness.engine.catalog.revision
    let answer = ask("update", #"{"feed":"s","elements":[{"id":1,"k":1},{"id":2,"k":"1"},{"id":3}]}"#).last
    let expected =
      #"[{"at":0,"name":"s/1","key":1},{"at":1,"name":"s/\"1\"","key":"1"},{"at":2,"name":"s","key":null}]"#
    expectEqual(answer?["result"]?["sections"]?["added"]?.text, expected)
    let deltas = harness.take(watcher).compactMap { Value($0)?["params"]?["sections"]?["added"]?.text }
    expectEqual(deltas, [expected, expected])
    // A name does not depend on other sections.
    _ = ask("delete", #"{"feed":"s","id":1}"#)
    expectEqual(sections("describe", "s"), [#""s/\"1\"" "1""#, #""s" null"#])
    _ = ask("update", #"{"feed":"s","element":{"id":1,"k":1}}"#)
    expectEqual(sections("describe", "s"), [#""s/1" 1"#, #""s/\"1\"" "1""#, #""s" null"#])
    let again = EngineHarness(isDurable: true)
    for batch in harness.stored { try again.engine.replay(batch) }
    for harness in [harness, again] {
      let since = #"{"feed":"home","since":{"epoch":"test","revision":\#(before)}}"#
      let resumed = ask("watch", since, harness)
      expectEqual(resumed.first?["result"]?["resumed"]?.bool, true)
      expectEqual(resumed.last?["params"]?["sections"]?["added"]?.text, expected)
    }
  }

  @Test("names that access rules withhold have no key")
  func access() throws {
    let harness = EngineHarness()
    try harness.configure(
      #"{"feeds":[{"feed":"s","kind":"collection","section":"$.k"}],"access":[{"feeds":"s","allow":["write"]}]}"#)
    let client = harness.connect(uid: 2000)
    let answer = harness.ask(client, "update", #"{"feed":"s","element":{"id":1,"k":"secret"}}"#).last ?? ""
    expectEqual(Value(answer)?["result"]?["sections"]?["added"]?.text, #"[{"at":0,"name":""}]"#)
  }
}
