import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import FeedModel
@testable import ReferenceModel

/// Evictions of elements by their number, their age and their own time. The clock of the harness starts at 1 s.
@Suite("Retention")
struct RetentionTests {
  private let harness: EngineHarness
  private let client: ConnectionID
  private let watcher: ConnectionID

  init() {
    harness = EngineHarness(isDurable: true)
    client = harness.connect()
    watcher = harness.connect()
  }

  private func ask(_ method: String, _ params: String) -> Value? {
    Value(harness.ask(client, method, params).last ?? "")
  }

  private func define(_ definition: String) {
    expectEqual(ask("define", definition)?.errorCode, nil)
    _ = harness.ask(watcher, "watch", #"{"feed":"f","initial":false}"#)
  }

  /// The deleted rows of each delta up to now.
  private func deltas() -> [String] {
    harness.take(watcher).compactMap { Value($0) }.filter { $0["method"]?.string == "delta" }
      .map { $0["params"]?["deleted"]?.text ?? "" }
  }

  private func ids() -> String {
    ask("query", #"{"feed":"f","path":"$[*].id"}"#)?["result"]?["nodes"]?.text ?? ""
  }

  @Test("elements expire at their own time, whatever its form", arguments: ["collection", "array"])
  func until(kind: String) {
    define(#"{"feed":"f","kind":"\#(kind)","id":"$.id","retain":{"until":"$.expires"}}"#)
    let elements = [
      #"{"id":1,"expires":3}"#, #"{"id":2}"#, #"{"id":3,"expires":"1970-01-01T01:00:02.5+01:00"}"#,
      #"{"id":4,"expires":"soon"}"#, #"{"id":5,"expires":null}"#, #"{"id":6,"expires":2.5e0}"#,
      #"{"id":7,"expires":"2026-01-01T00:00:00Z"}"#,
    ]
    expectEqual(ask("update", #"{"feed":"f","elements":[\#(elements.joined(separator: ","))]}"#)?.errorCode, nil)
    _ = harness.take(watcher)
    harness.advance(seconds: 1.4)
    expectEqual(deltas(), [])
    harness.advance(seconds: 0.1)
    expectEqual(deltas(), ["[[0,2],[0,5]]"])
    harness.advance(seconds: 0.5)
    expectEqual(deltas(), ["[[0,0]]"])
    harness.advance(seconds: 1000)
    expectEqual(ids(), "[2,4,5,7]")
  }

  /// The lists of all feeds are updated with the one that is redefined; `checkInvariants` compares them with all feeds.
  @Test(
    "a feed begins and ends to evict by time, also in a transaction that is rolled back",
    arguments: ["collection", "array"])
  func redefinedRetention(kind: String) {
    let catalog = harness.engine.catalog
    for name in ["e", "g"] {
      _ = ask("define", #"{"feed":"\#(name)","kind":"\#(kind)","id":"$.id","retain":{"seconds":1000}}"#)
    }
    define(#"{"feed":"f","kind":"\#(kind)","id":"$.id"}"#)
    _ = ask("update", #"{"feed":"f","element":{"id":1}}"#)
    let timed = #"{"feed":"f","kind":"\#(kind)","id":"$.id","retain":{"seconds":5},"replace":true}"#
    let slow =
      kind == "array"
      ? timed : timed.replacing(#""retain""#, with: #""bins":[{"name":"x","filter":"count(@..x) > 0"}],"retain""#)
    let plain = #"{"feed":"f","kind":"\#(kind)","id":"$.id","replace":true}"#
    func operation(_ method: String, _ params: String) -> String { #"{"method":"\#(method)","params":\#(params)}"# }
    func transaction(_ operations: [String]) -> Value? {
      ask("transaction", #"{"ops":[\#(operations.joined(separator: ","))]}"#)
    }
    let missing = operation("undefine", #"{"feed":"missing"}"#)
    for first in [timed, slow, plain] {
      expectEqual(ask("define", first)?.errorCode, nil)
      catalog.checkInvariants()
      for definitions in [[plain], [timed], [slow], [plain, slow], [slow, timed, plain]] {
        let operations = definitions.map { operation("define", $0) }
        expectEqual(transaction(operations + [missing])?.errorCode, -32000)
        catalog.checkInvariants()
        expectEqual(transaction(operations + [operation("undefine", #"{"feed":"f"}"#), missing])?.errorCode, -32000)
        catalog.checkInvariants()
      }
    }
    expectEqual(catalog.nextExpiry, nil)
    expectEqual(ask("define", timed)?.errorCode, nil)
    catalog.checkInvariants()
    harness.advance(seconds: 6)
    expectEqual(ids(), "[]")
  }

  @Test("a time that is past evicts at once, and a new version has a new time", arguments: ["collection", "array"])
  func changedTimes(kind: String) {
    define(#"{"feed":"f","kind":"\#(kind)","id":"$.id","retain":{"until":"$.x"}}"#)
    expectEqual(
      ask("update", #"{"feed":"f","elements":[{"id":1,"x":-1},{"id":2,"x":2},{"id":3,"x":2}]}"#)?.errorCode, nil)
    expectEqual(ids(), "[2,3]")
    expectEqual(ask("update", #"{"feed":"f","element":{"id":2,"x":5}}"#)?.errorCode, nil)
    expectEqual(ask("patch", #"{"feed":"f","id":3,"patch":{"x":null}}"#)?.errorCode, nil)
    harness.advance(seconds: 2)
    expectEqual(ids(), "[2,3]")
    harness.advance(seconds: 2)
    expectEqual(ids(), "[3]")
    expectEqual(ask("patch", #"{"feed":"f","id":3,"patch":{"x":6}}"#)?.errorCode, nil)
    expectEqual(ask("define", #"{"feed":"f","kind":"\#(kind)","id":"$.id","replace":true}"#)?.errorCode, nil)
    harness.advance(seconds: 9)
    expectEqual(ids(), "[3]")
    expectEqual(
      ask("define", #"{"feed":"f","kind":"\#(kind)","id":"$.id","retain":{"until":"$.x"},"replace":true}"#)?.errorCode,
      nil)
    harness.turn()
    expectEqual(ids(), "[]")
  }

  @Test("a refused request leaves the times as they were", arguments: ["collection", "array"])
  func undone(kind: String) {
    define(#"{"feed":"f","kind":"\#(kind)","id":"$.id","retain":{"until":"$.x"}}"#)
    expectEqual(ask("update", #"{"feed":"f","elements":[{"id":1,"x":3},{"id":2}]}"#)?.errorCode, nil)
    let refused = ask(
      "transaction",
      #"{"ops":[{"method":"update","params":{"feed":"f","elements":[{"id":1,"x":9},{"id":2,"x":2},{"id":3,"x":2}]}},{"method":"delete","params":{"feed":"f","id":2}},{"method":"delete","params":{"feed":"none","id":2}}]}"#
    )
    expectEqual(refused?.errorCode, -32000)
    harness.advance(seconds: 1.5)
    expectEqual(ids(), "[1,2]")
    harness.advance(seconds: 0.5)
    expectEqual(ids(), "[2]")
  }

  @Test("an array evicts by age, and a row that only moves gets no younger")
  func age() {
    define(#"{"feed":"f","kind":"array","id":"$.id","retain":{"seconds":2}}"#)
    expectEqual(ask("insert", #"{"feed":"f","elements":[{"id":1},{"id":2},{"id":3}]}"#)?.errorCode, nil)
    harness.advance(seconds: 1)
    expectEqual(ask("move", #"{"feed":"f","id":1,"to":2}"#)?.errorCode, nil)
    expectEqual(ask("update", #"{"feed":"f","elements":[{"id":2},{"id":3,"v":1}]}"#)?.errorCode, nil)
    _ = harness.take(watcher)
    harness.advance(seconds: 1.1)
    expectEqual(deltas(), ["[[0,0],[0,2]]"])
    expectEqual(ids(), "[3]")
  }

  @Test("age and own time work together, and each element leaves once")
  func both() {
    define(#"{"feed":"f","kind":"array","retain":{"seconds":2,"until":"$.x","count":4}}"#)
    expectEqual(
      ask("insert", #"{"feed":"f","elements":[{"id":0},{"id":1,"x":2},{"id":2,"x":3.1},{"id":3},{"id":4,"x":9}]}"#)?
        .errorCode, nil)
    expectEqual(ids(), "[1,2,3,4]")
    harness.advance(seconds: 1)
    expectEqual(ids(), "[2,3,4]")
    harness.advance(seconds: 2)
    expectEqual(ids(), "[]")
    expectEqual(
      ask("describe", #"{"feed":"f"}"#)?["result"]?["retain"]?.text, #"{"count":4,"seconds":2,"until":"$.x"}"#)
  }

  @Test("a smaller number evicts at once in the commit that defines it")
  func smallerNumber() {
    define(#"{"feed":"f","kind":"array"}"#)
    expectEqual(ask("insert", #"{"feed":"f","elements":[{"id":1},{"id":2},{"id":3}]}"#)?.errorCode, nil)
    expectEqual(ask("replace", #"{"feed":"f","elements":[{"id":4}],"at":0}"#)?.errorCode, nil)
    _ = harness.take(watcher)
    expectEqual(ask("define", #"{"feed":"f","kind":"array","retain":{"count":2},"replace":true}"#)?.errorCode, nil)
    expectEqual(deltas(), ["[[0,1]]"])
    expectEqual(ids(), "[4,3]")
  }

  /// An eviction of 1000 elements of 250 feeds begins behind the last feed of the one before. Those of a former version were not
  /// bounded.
  @Test("an eviction is bounded for all feeds together, and each feed gets its turn")
  func boundedEvictions() throws {
    let elements = (1...5).map { #"{"id":\#($0),"x":9}"# }.joined(separator: ",")
    for number in 100..<400 {
      let name = "f\(number)"
      let definition = #"{"feed":"\#(name)","kind":"collection","retain":{"until":"$.x"}}"#
      expectEqual(ask("define", definition)?.errorCode, nil)
      expectEqual(ask("update", #"{"feed":"\#(name)","elements":[\#(elements)]}"#)?.errorCode, nil)
    }
    let before = harness.stored.count
    harness.advance(seconds: 9)
    let evictions = harness.stored[before...]
    expectEqual(
      evictions.map { String(decoding: $0.frames.dropFirst(4), as: UTF8.self) },
      ["", "f349", "f299"].map { #"{"method":"$evict","params":{"after":"\#($0)"}}"# })
    expectEqual(harness.engine.catalog.accounts.total.elements, 0)

    let again = EngineHarness(isDurable: true)
    for batch in harness.stored[..<before] { try again.engine.replay(batch) }
    var counts = [again.engine.catalog.accounts.total.elements]
    for batch in evictions {
      try again.engine.replay(batch)
      counts.append(again.engine.catalog.accounts.total.elements)
    }
    expectEqual(counts, [1500, 500, 100, 0])
    expectEqual(again.engine.catalog.revision, harness.engine.catalog.revision)

    let former = EngineHarness(isDurable: true)
    for batch in harness.stored[..<before] { try former.engine.replay(batch) }
    let (number, moment) = (UInt64(before) + 1, harness.now)
    try EngineHarness.frame(#"{"method":"$evict"}"#).withUnsafeBytes { frames in
      try former.engine.replay(LogBatch(number: number, at: moment, revision: nil, frames: frames))
    }
    expectEqual(former.engine.catalog.accounts.total.elements, 0)
  }

  @Test("malformed members are refused")
  func malformed() {
    for (retain, member) in [
      (#"{"until":3}"#, "retain.until"), (#"{"till":"$.x"}"#, "retain.till"), (#"[]"#, "retain"),
      (#"{"count":0}"#, "retain.count"),
    ] {
      for kind in ["array", "collection"] {
        let refused = ask("define", #"{"feed":"f","kind":"\#(kind)","retain":\#(retain)}"#)
        expectEqual(refused?.errorCode, -32602)
        expectEqual(refused?.errorData?["member"]?.string, member)
      }
    }
    expectEqual(ask("define", #"{"feed":"f","kind":"array","retain":{"until":"$.x["}}"#)?.errorCode, -32004)
    expectEqual(ask("define", #"{"feed":"f","kind":"single","retain":{"count":1}}"#)?.errorCode, -32602)
  }
}
