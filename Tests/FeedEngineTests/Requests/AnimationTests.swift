import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// The animation hint of an operation is sent with the deltas of the feeds that it changed, and with no others.
struct AnimationTests {
  private let harness = EngineHarness()
  private let pusher: ConnectionID
  private let watcher: ConnectionID

  init() {
    pusher = harness.connect()
    watcher = harness.connect()
    for definition in [
      #"{"feed":"a","kind":"array"}"#, #"{"feed":"b","kind":"array"}"#,
      #"{"feed":"k","kind":"collection","bins":[{"name":"high","filter":"@.p > 5"},{"name":"low","filter":"@.p < 5"}]}"#,
      #"{"feed":"both","kind":"composed","children":["a","k"]}"#,
      #"{"feed":"lows","kind":"composed","children":["k/low"]}"#,
      #"{"feed":"tabs","kind":"segmented","children":["k/low","a"]}"#,
      #"{"feed":"mixed","kind":"slots","contents":{"A":"a"},"pattern":["A"]}"#,
      #"{"feed":"top","kind":"composed","children":["mixed","b"]}"#,
    ] {
      _ = harness.ask(pusher, "define", definition)
    }
    for feed in ["a", "b", "k", "k/high", "k/low", "both", "lows", "tabs", "mixed", "top"] {
      _ = harness.ask(watcher, "watch", #"{"feed":"\#(feed)","initial":false}"#)
    }
  }

  /// Returns the hint in each feed's delta after a transaction of these operations; "" for a delta without a hint.
  private func hints(_ operations: String...) -> [String: String] {
    let answer = harness.ask(pusher, "transaction", #"{"ops":[\#(operations.joined(separator: ","))]}"#)
    expect(answer.first?.json?["result"]?["results"] != nil, "\(answer)")
    var hints: [String: String] = [:]
    for delta in harness.take(watcher) {
      let params = delta.json?["params"]
      guard let feed = params?["feed"]?.string else { continue }
      expectEqual(hints[feed], nil)
      hints[feed] = params?["animation"]?.string ?? ""
    }
    return hints
  }

  private func insert(_ feed: String, _ animation: String? = nil) -> String {
    let hint = animation.map { #","animation":"\#($0)""# } ?? ""
    return #"{"method":"insert","params":{"feed":"\#(feed)","elements":[1]\#(hint)}}"#
  }

  private func update(_ element: String, _ animation: String? = nil) -> String {
    let hint = animation.map { #","animation":"\#($0)""# } ?? ""
    return #"{"method":"update","params":{"feed":"k","element":\#(element)\#(hint)}}"#
  }

  @Test func hintIsNotSentForOtherFeeds() {
    expectEqual(
      hints(insert("a", "fade"), update(#"{"id":1,"p":1}"#)),
      [
        "a": "fade", "both": "fade", "mixed": "fade", "top": "fade", "k": "", "k/low": "", "lows": "", "tabs": "",
      ])
  }

  @Test func hintIsNotSentForOtherBins() {
    expectEqual(
      hints(update(#"{"id":1,"p":1}"#), update(#"{"id":2,"p":9}"#, "fade")),
      [
        "k": "fade", "k/high": "fade", "k/low": "", "lows": "", "tabs": "", "both": "fade",
      ])
  }

  @Test func lastHintWinsInProvidersOfSeveralFeeds() {
    expectEqual(
      hints(insert("a", "fade"), insert("b", "slide"), insert("b")),
      [
        "a": "fade", "both": "fade", "mixed": "fade", "b": "slide", "top": "slide",
      ])
    expectEqual(
      hints(insert("b", "slide"), insert("a", "fade")),
      [
        "a": "fade", "both": "fade", "mixed": "fade", "b": "slide", "top": "fade",
      ])
  }

  @Test func hintIsNotSentForSegmentedFeedsThatDoNotShowTheRow() {
    // The segmented feed shows the bin; its other child, the array, is not active.
    expectEqual(hints(insert("a", "fade"), update(#"{"id":1,"p":1}"#))["tabs"], "")
    let activate = #"{"method":"activate","params":{"feed":"tabs","child":"a","animation":"slide"}}"#
    expectEqual(
      hints(update(#"{"id":1,"p":2}"#), activate), ["k": "", "k/low": "", "lows": "", "tabs": "slide", "both": ""])
  }

  @Test func hintOfAnOperationWithoutEffectIsNotSent() {
    _ = hints(update(#"{"id":1,"p":1}"#))
    expectEqual(
      hints(insert("b"), update(#"{"id":1,"p":1}"#, "fade"), update(#"{"id":2,"p":9}"#)),
      [
        "b": "", "top": "", "k": "", "k/high": "", "both": "",
      ])
  }

  @Test func hintIsNotSentWithTheNextCommit() {
    _ = hints(insert("a", "fade"), update(#"{"id":1,"p":1}"#, "slide"))
    let next = hints(insert("a"), update(#"{"id":1,"p":2}"#))
    expectEqual(next.count, 8)
    expect(next.values.allSatisfy { $0.isEmpty })
  }

  @Test func hintOfARequestIsSentForAllItsChanges() {
    _ = harness.ask(pusher, "update", #"{"feed":"k","elements":[{"id":1,"p":1},{"id":2,"p":9}],"animation":"fade"}"#)
    let deltas = harness.take(watcher)
    expectEqual(deltas.count, 6)
    expect(deltas.allSatisfy { $0.json?["params"]?["animation"]?.string == "fade" })
  }
}
