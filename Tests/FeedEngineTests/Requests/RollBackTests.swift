import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// State that a failed mutation must not leave in the engine.
struct RollBackTests {
  let harness = EngineHarness()

  @Test func hintOfAFailedMutationIsDiscarded() {
    let (pusher, watcher) = (harness.connect(), harness.connect())
    _ = harness.ask(pusher, "define", #"{"feed":"a","kind":"array"}"#)
    _ = harness.ask(watcher, "watch", #"{"feed":"a","initial":false}"#)
    let refused = harness.ask(pusher, "insert", #"{"feed":"a","elements":[1],"at":[7],"animation":"fade"}"#)
    expectEqual(refused.first?.json?.errorCode, -32005)
    _ = harness.ask(pusher, "insert", #"{"feed":"a","elements":[1]}"#)
    let deltas = harness.take(watcher)
    expectEqual(deltas.count, 1)
    expectEqual(deltas.first?.json?["params"]?["animation"], nil)
  }

  @Test func feedOfAFailedTransactionIsNotDefined() {
    let id = harness.connect()
    let transaction = """
      {"ops":[{"method":"define","params":{"feed":"c","kind":"collection"}},\
      {"method":"update","params":{"feed":"c","element":{"id":1}}},{"method":"update","params":{"feed":"c","element":{}}}]}
      """
    expectEqual(harness.ask(id, "transaction", transaction).first?.json?.errorCode, -32003)
    expectEqual(harness.ask(id, "update", #"{"feed":"c","element":{"id":1}}"#).first?.json?.errorCode, -32000)
  }
}
