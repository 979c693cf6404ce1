import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

struct QueryTests {
  private func fill(_ harness: EngineHarness) {
    let client = harness.connect()
    _ = harness.ask(client, "define", #"{"feed":"list","kind":"array"}"#)
    _ = harness.ask(client, "insert", #"{"feed":"list","elements":[{"a":0},{"a":1},{"a":2},{"a":3},{"a":4}]}"#)
  }

  /// Paths of every shape, whether evaluated element by element or over the whole document.
  @Test(arguments: [
    ("$[*].a", "0,1,2,3,4"), ("$[1].a", "1"), ("$[-1].a", "4"), ("$[9].a", ""), ("$[1:4].a", "1,2,3"),
    ("$[::2].a", "0,2,4"), ("$[::-1].a", "4,3,2,1,0"), ("$[3:0:-2].a", "3,1"), ("$[?@.a>2].a", "3,4"),
    ("$[?@.a==$[0].a].a", "0"), ("$..a", "0,1,2,3,4"), ("$[0,2].a", "0,2"), ("$.a", ""),
  ])
  func queryReturnsTheNodesOfAPath(path: String, nodes: String) {
    let harness = EngineHarness()
    fill(harness)
    let client = harness.connect()
    let answer = harness.ask(client, "query", #"{"feed":"list","path":"\#(path)"}"#)
    expectEqual(answer, [#"{"jsonrpc":"2.0","id":1,"result":{"nodes":[\#(nodes)],"revision":2}}"#])
  }

  @Test func queryOfASingleEvaluatesItsElement() {
    let harness = EngineHarness()
    let client = harness.connect()
    _ = harness.ask(client, "define", #"{"feed":"one","kind":"single"}"#)
    func nodes(_ path: String) -> String? {
      harness.ask(client, "query", #"{"feed":"one","path":"\#(path)"}"#).first?.json?["result"]?["nodes"]?.text
    }
    expectEqual(nodes("$"), "[]")
    _ = harness.ask(client, "put", #"{"feed":"one","element":{"x":[1,2]}}"#)
    expectEqual(nodes("$.x[1]"), "[2]")
  }
}
