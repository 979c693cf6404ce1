import FeedModel
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// Limits on connections and times, and those whose setting alone decides.
extension LimitCase {
  static func answersPing(_ harness: EngineHarness, _ id: ConnectionID) -> Bool {
    harness.ask(id, "ping").contains(#"{"jsonrpc":"2.0","id":1,"result":{}}"#)
  }

  /// The reason of the `bye` that a connection got; nil if it is open.
  static func bye(_ harness: EngineHarness, _ id: ConnectionID) -> String? {
    harness.isOpen(id) ? nil : harness.take(id).last?.json?["params"]?["reason"]?.string ?? "none"
  }

  /// Whether the last of these connections is accepted. The others must be.
  private static func acceptsLast(of ids: [ConnectionID], _ harness: EngineHarness) -> Bool {
    harness.turn()
    expect(ids.dropLast().allSatisfy { answersPing(harness, $0) })
    let reason = bye(harness, ids[ids.count - 1])
    expect(reason == nil || reason == "limit")
    return reason == nil
  }

  /// Whether a watch that has seen the first of two changes resumes after `seconds`.
  static func resumes(_ harness: EngineHarness, after seconds: Int) -> Bool {
    let id = harness.connect()
    _ = harness.ask(id, array("a").method, array("a").params)
    let since = harness.ask(id, "insert", #"{"feed":"a","element":1}"#).first?.json?["result"]?["revision"]?.int ?? -1
    _ = harness.ask(id, "insert", #"{"feed":"a","element":2}"#)
    for _ in 0..<seconds { harness.advance(seconds: 1) }
    let answer = harness.ask(id, "watch", #"{"feed":"a","since":{"epoch":"test","revision":\#(since)}}"#).first?.json
    return answer?["result"]?["resumed"]?.bool == true
  }

  static let connections: [LimitCase] = [
    effect("maxFrame", "bytes of a request", 4096) { harness, count in
      let id = harness.connect()
      let request = #"{"jsonrpc":"2.0","id":1,"method":"ping"}"#
      harness.send(id, request + String(repeating: " ", count: count - request.utf8.count))
      let frames = harness.take(id).compactMap(\.json)
      if frames.first?["result"] != nil { return true }
      expectEqual(frames.map { $0.errorCode }, [-32600, nil])
      expect(frames.last?["params"]?["reason"]?.string == "badFrame" && !harness.isOpen(id))
      return false
    },
    effect("maxConnections", "connections", 3, other: { $0.reservedConnections = 0 }) { harness, count in
      let ids = (0..<count).map { harness.connect(uid: UInt32($0 + 1)) }
      return acceptsLast(of: ids, harness)
    },
    effect("maxConnectionsPerUser", "connections of a user", 3) { harness, count in
      let ids = (0..<count).map { _ in harness.connect(uid: 7) }
      let isAccepted = acceptsLast(of: ids, harness)
      expect(answersPing(harness, harness.connect(uid: 8)))
      return isAccepted
    },
    effect("reservedConnections", "connections of root beyond the limit", 2, other: { $0.maxConnections = 1 }) {
      harness, count in
      _ = harness.connect(uid: 7)
      let ids = (0..<count).map { _ in harness.connect(uid: 0) }
      return acceptsLast(of: ids, harness)
    },
    effect("maxQueue", "bytes that are not read", 4096) { harness, count in
      let id = harness.connect()
      _ = harness.ask(id, array("a").method, array("a").params)
      let around = #"{"jsonrpc":"2.0","id":1,"result":{"nodes":[""],"revision":2}}"#.utf8.count + 4
      _ = harness.ask(id, "insert", #"{"feed":"a","element":\#(text(count - around))}"#)
      harness.stopped = [id]
      harness.send(id, #"{"jsonrpc":"2.0","id":1,"method":"query","params":{"feed":"a","path":"$[0]"}}"#)
      let wants = harness.wantsInput(id)
      harness.resume(id)
      expectEqual(harness.take(id).first?.utf8.count, count - 4)
      expect(answersPing(harness, id))
      return wants
    },
    effect("maxQueuePerUser", "bytes of incomplete frames", 9000) { harness, count in
      let ids = [harness.connect(uid: 7), harness.connect(uid: 7)]
      let half = EngineHarness.frame(text(100_000))
      harness.deliver(ids[0], Array(half.prefix(5000)))
      harness.deliver(ids[1], Array(half.prefix(count - 5000)))
      let reason = bye(harness, ids[0])
      expect(reason == nil || reason == "quota")
      expect(harness.isOpen(ids[1]))
      return reason == nil
    },
    effect("frameTimeout", "seconds before an incomplete frame is closed", 5) { harness, count in
      let id = harness.connect()
      harness.deliver(id, [0, 0])
      // The limit is checked once a second; a frame is closed when it is reached.
      for _ in 0..<count - 1 { harness.advance(seconds: 1) }
      let reason = bye(harness, id)
      expect(reason == nil || reason == "frameTimeout")
      return reason == nil
    },
    effect("bookmarkInterval", "seconds without a change", 5) { harness, count in
      let (id, other) = (harness.connect(), harness.connect())
      for feed in ["a", "b"] { _ = harness.ask(other, array(feed).method, array(feed).params) }
      _ = harness.ask(id, "watch", #"{"feed":"a"}"#)
      _ = harness.ask(other, "insert", #"{"feed":"b","element":1}"#)
      for _ in 0..<count - 1 { harness.advance(seconds: 1) }
      return !harness.take(id).contains { $0.json?["method"]?.string == "bookmark" }
    },
    effect("historySeconds", "seconds since a change", 5) { harness, count in resumes(harness, after: count) },
  ]

  /// Limits whose setting alone decides.
  static let settings: [LimitCase] =
    ["historyBytes", "maxHistoryBytes"].map { name in
      effect(name, "bytes of recorded changes", nil) { harness, _ in resumes(harness, after: 2) }
    } + [
      effect("maxViewSteps", "steps of the filter of a view", nil) { harness, _ in
        let id = harness.connect()
        for (method, params) in [
          array("a"), ("define", #"{"feed":"v","kind":"view","of":"a","filter":"@..[?@ == 1499]"}"#),
          ("insert", #"{"feed":"a","element":\#(list(1500))}"#),
        ] { expect(harness.ask(id, method, params).first?.json?["result"] != nil) }
        return harness.ask(id, "describe", #"{"feed":"v"}"#).first?.json?["result"]?["count"]?.int == 1
      }
    ]
}
