import FeedModel
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// `maxRepeats` refuses exactly what shows a feed too often, although the daemon counts most ways by upper bounds.
@Suite("Repeats of feeds") struct RepeatsTests {
  /// The children of composed feeds, whose ways are counted one by one.
  private struct Graph {
    var children: [String: [String]] = [:]

    /// How often `feed` shows each other feed.
    private func shown(by feed: String) -> [String: Int] {
      var counts: [String: Int] = [:]
      for child in children[feed] ?? [] {
        counts[child, default: 0] += 1
        counts.merge(shown(by: child), uniquingKeysWith: +)
      }
      return counts
    }

    func shows(_ feed: String, _ other: String) -> Bool { feed == other || shown(by: feed)[other] != nil }
    var repeats: Int { children.keys.reduce(1) { max($0, shown(by: $1).values.max() ?? 1) } }
  }

  @Test func randomGraphsAreRefusedAtMaxRepeats() {
    var random = SeededRandom(seed: UInt64.random(in: 0...UInt64.max))
    let harness = EngineHarness { $0.maxRepeats = 3 }
    let client = harness.connect()
    func ask(_ method: String, _ params: String) -> Value? { harness.ask(client, method, params).first?.json }
    var graph = Graph()
    let (plain, composed) = ((0..<8).map { "a\($0)" }, (0..<8).map { "c\($0)" })
    for name in plain { _ = ask("define", #"{"feed":"\#(name)","kind":"array"}"#) }
    for name in composed {
      _ = ask("define", #"{"feed":"\#(name)","kind":"composed","children":[]}"#)
      graph.children[name] = []
    }
    var refusals = 0
    for _ in 0..<1500 {
      guard let feed = composed.randomElement(using: &random) else { continue }
      var next = graph
      let request: (method: String, params: String)
      if let child = graph.children[feed]?.randomElement(using: &random), Int.random(in: 0..<3, using: &random) == 0 {
        next.children[feed]?.removeAll { $0 == child }
        request = ("removeChild", #"{"feed":"\#(feed)","child":"\#(child)"}"#)
      } else if Int.random(in: 0..<4, using: &random) == 0 {
        let children = (plain + composed).filter { !graph.shows($0, feed) }.shuffled(using: &random).prefix(4)
        next.children[feed] = Array(children)
        let list = children.map { "\"\($0)\"" }.joined(separator: ",")
        request = ("define", #"{"feed":"\#(feed)","kind":"composed","children":[\#(list)],"replace":true}"#)
      } else {
        let free = (plain + composed).filter { !graph.shows($0, feed) && graph.children[feed]?.contains($0) != true }
        guard let child = free.randomElement(using: &random) else { continue }
        next.children[feed]?.append(child)
        request = ("insertChild", #"{"feed":"\#(feed)","child":"\#(child)"}"#)
      }
      // A rollback leaves the bounds as they were.
      let undone = #"{"method":"\#(request.method)","params":\#(request.params)}"#
      _ = ask("transaction", #"{"ops":[\#(undone),{"method":"undefine","params":{"feed":"missing"}}]}"#)
      let answer = ask(request.method, request.params)
      if next.repeats > 3 {
        refusals += 1
        expectEqual(answer?.errorData?["limit"]?.string, "maxRepeats", "seed \(random.seed)")
      } else {
        expect(answer?["result"] != nil, "seed \(random.seed)")
        graph = next
      }
    }
    expect(refusals > 0, "seed \(random.seed)")
  }
}
