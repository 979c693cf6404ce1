import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

struct MainJobTests {
  private let harness = EngineHarness()

  static let inbox = #"""
    {"feed":"inbox","kind":"collection","bins":[
      {"name":"urgent","filter":"@.priority >= 8","sort":[{"by":"$.priority","order":"descending"}]},
      {"name":"rest"}]}
    """#

  @Test func pushIsPublishedAsADelta() {
    let (pusher, watcher) = (harness.connect(), harness.connect())
    expectEqual(harness.ask(pusher, "define", Self.inbox), [#"{"jsonrpc":"2.0","id":1,"result":{"revision":1}}"#])
    expectEqual(
      harness.ask(watcher, "watch", #"{"feed":"inbox"}"#),
      [
        #"{"jsonrpc":"2.0","id":1,"result":{"feed":"inbox","epoch":"test","revision":1,"resumed":false,"sections":[{"name":"inbox/urgent","count":0},{"name":"inbox/rest","count":0}]}}"#,
        #"{"jsonrpc":"2.0","method":"snapshot","params":{"feed":"inbox","revision":1,"at":[0,0],"elements":[],"last":true}}"#,
      ])
    expectEqual(
      harness.ask(pusher, "update", #"{"feed":"inbox","element":{"id":1, "priority":9}}"#),
      [
        #"{"jsonrpc":"2.0","id":1,"result":{"revision":2,"deleted":[],"added":[[0,0],[1,0]],"updated":[]}}"#
      ])
    expectEqual(
      harness.take(watcher),
      [
        #"{"jsonrpc":"2.0","method":"delta","params":{"feed":"inbox","from":1,"revision":2,"deleted":[],"added":[[0,0],[1,0]],"updated":[],"elements":[{"id":1,"priority":9},{"id":1,"priority":9}]}}"#
      ])
    expectEqual(
      harness.ask(pusher, "update", #"{"feed":"inbox","elements":[{"id":1,"priority":3},{"id":2,"priority":8}]}"#),
      [
        #"{"jsonrpc":"2.0","id":1,"result":{"revision":3,"deleted":[[0,0]],"added":[[0,0],[1,1]],"updated":[[1,0]]}}"#
      ])
    expectEqual(harness.ask(pusher, "verify", #"{"feed":"inbox"}"#).first?.json?["result"]?["counts"]?.path, [1, 2])
  }

  @Test func updateWithEqualElementIsNotPublished() {
    let (pusher, watcher) = (harness.connect(), harness.connect())
    _ = harness.ask(pusher, "define", Self.inbox)
    _ = harness.ask(pusher, "update", #"{"feed":"inbox","element":{"id":1,"priority":9}}"#)
    _ = harness.ask(watcher, "watch", #"{"feed":"inbox"}"#)
    expectEqual(
      harness.ask(pusher, "update", #"{"feed":"inbox","element":{ "id":1, "priority":9 }}"#),
      [
        #"{"jsonrpc":"2.0","id":1,"result":{"revision":2,"deleted":[],"added":[],"updated":[]}}"#
      ])
    expectEqual(harness.take(watcher), [])
  }

  @Test func transactionIsPublishedAsOneDelta() {
    let (pusher, watcher) = (harness.connect(), harness.connect())
    _ = harness.ask(pusher, "define", Self.inbox)
    _ = harness.ask(watcher, "watch", #"{"feed":"inbox/rest"}"#)
    _ = harness.take(watcher)
    let answer = harness.ask(
      pusher, "transaction",
      #"""
      {"ops":[{"method":"update","params":{"feed":"inbox","element":{"id":1,"priority":1}}},
              {"method":"update","params":{"feed":"inbox","element":{"id":2,"priority":2}}},
              {"method":"delete","params":{"feed":"inbox","id":1}}]}
      """#)
    expectEqual(
      answer,
      [
        #"{"jsonrpc":"2.0","id":1,"result":{"revision":2,"results":[{"deleted":[],"added":[[1,0]],"updated":[]},{"deleted":[],"added":[[1,1]],"updated":[]},{"deleted":[[1,0]],"added":[],"updated":[]}]}}"#
      ])
    expectEqual(
      harness.take(watcher),
      [
        #"{"jsonrpc":"2.0","method":"delta","params":{"feed":"inbox/rest","from":1,"revision":2,"deleted":[],"added":[[0,0]],"updated":[],"elements":[{"id":2,"priority":2}]}}"#
      ])
  }

  @Test func failedTransactionIsRolledBack() {
    let pusher = harness.connect()
    _ = harness.ask(pusher, "define", Self.inbox)
    _ = harness.ask(pusher, "update", #"{"feed":"inbox","element":{"id":1,"priority":9}}"#)
    let before = harness.ask(pusher, "snapshot", #"{"feed":"inbox"}"#)
    let answer = harness.ask(
      pusher, "transaction",
      #"""
      {"ops":[{"method":"update","params":{"feed":"inbox","elements":[{"id":1,"priority":1},{"id":2,"priority":9}]}},
              {"method":"define","params":{"feed":"other","kind":"collection"}},
              {"method":"delete","params":{"feed":"inbox","id":1}},
              {"method":"update","params":{"feed":"inbox","element":{"priority":2}}}]}
      """#)
    expectEqual(answer.first?.json?.errorCode, -32003)
    expectEqual(answer.first?.json?.errorData?["op"]?.int, 3)
    expectEqual(harness.ask(pusher, "snapshot", #"{"feed":"inbox"}"#), before)
    expectEqual(harness.ask(pusher, "describe", #"{"feed":"other"}"#).first?.json?.errorCode, -32000)
  }
}
