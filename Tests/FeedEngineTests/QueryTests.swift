import Testing

@testable import FeedEngine

@Suite struct QueryTests {
  private func fill(_ harness: EngineHarness) {
    let client = harness.connect()
    _ = harness.ask(client, "define", #"{"feed":"list","kind":"array"}"#)
    _ = harness.ask(client, "insert", #"{"feed":"list","elements":[{"a":0},{"a":1},{"a":2},{"a":3},{"a":4}]}"#)
  }

  /// Paths of every shape, answered element by element or over the whole document alike.
  @Test(arguments: [
    ("$[*].a", "0,1,2,3,4"), ("$[1].a", "1"), ("$[-1].a", "4"), ("$[9].a", ""), ("$[1:4].a", "1,2,3"),
    ("$[::2].a", "0,2,4"), ("$[::-1].a", "4,3,2,1,0"), ("$[3:0:-2].a", "3,1"), ("$[?@.a>2].a", "3,4"),
    ("$[?@.a==$[0].a].a", "0"), ("$..a", "0,1,2,3,4"), ("$[0,2].a", "0,2"), ("$.a", ""),
  ])
  func aPathGivesItsNodes(path: String, nodes: String) {
    let harness = EngineHarness()
    fill(harness)
    let client = harness.connect()
    let answer = harness.ask(client, "query", #"{"feed":"list","path":"\#(path)"}"#)
    #expect(answer == [#"{"jsonrpc":"2.0","id":1,"result":{"nodes":[\#(nodes)],"revision":2}}"#])
  }

  @Test func aSingleIsItsElement() {
    let harness = EngineHarness()
    let client = harness.connect()
    _ = harness.ask(client, "define", #"{"feed":"one","kind":"single"}"#)
    #expect(harness.ask(client, "query", #"{"feed":"one","path":"$"}"#).first?.contains(#""nodes":[]"#) == true)
    _ = harness.ask(client, "put", #"{"feed":"one","element":{"x":[1,2]}}"#)
    #expect(harness.ask(client, "query", #"{"feed":"one","path":"$.x[1]"}"#).first?.contains(#""nodes":[2]"#) == true)
  }
}
