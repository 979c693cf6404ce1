import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// Operations of one transaction that cancel out publish no delta, and a transaction of only such operations is no commit.
struct CancellingTests {
  private let harness = EngineHarness()
  private let pusher: ConnectionID
  private let watcher: ConnectionID

  /// A structural operation between the others: on an unrelated feed, or on a provider that shows their rows.
  enum Between: CaseIterable {
    case nothing, otherFeed, parent

    var operation: String? {
      switch self {
      case .nothing: nil
      case .otherFeed: #"{"method":"insertChild","params":{"feed":"p","child":"b"}}"#
      case .parent: #"{"method":"insertChild","params":{"feed":"p","child":"a"}}"#
      }
    }
  }

  init() {
    pusher = harness.connect()
    watcher = harness.connect()
    for definition in [
      #"{"feed":"a","kind":"array"}"#, #"{"feed":"b","kind":"array"}"#,
      #"{"feed":"k","kind":"collection","bins":[{"name":"hi","filter":"@.p >= 5"},{"name":"lo"}]}"#,
      #"{"feed":"p","kind":"composed","children":[]}"#,
      #"{"feed":"shows","kind":"composed","children":["a","k"]}"#,
    ] {
      _ = harness.ask(pusher, "define", definition)
    }
    _ = harness.ask(pusher, "insert", #"{"feed":"a","elements":["x","y","z"]}"#)
    _ = harness.ask(pusher, "update", #"{"feed":"k","elements":[{"id":1,"p":9},{"id":2,"p":9}]}"#)
    for feed in ["a", "k", "k/lo", "shows"] {
      _ = harness.ask(watcher, "watch", #"{"feed":"\#(feed)","initial":false}"#)
    }
  }

  private func move(_ from: Int, _ to: Int) -> String {
    #"{"method":"move","params":{"feed":"a","from":\#(from),"to":\#(to)}}"#
  }

  private func update(_ element: String) -> String {
    #"{"method":"update","params":{"feed":"k","element":\#(element)}}"#
  }

  /// Runs the operations with the structural one at every position, each time in a fresh daemon.
  private static func expectNoDelta(_ make: (CancellingTests) -> [String]) {
    for between in Between.allCases {
      let count = make(CancellingTests()).count
      for place in between == .nothing ? [0] : Array(0...count) {
        let tests = CancellingTests()
        var operations = make(tests)
        if let operation = between.operation { operations.insert(operation, at: place) }
        let before = tests.harness.engine.catalog.revision
        let answer = tests.harness.ask(tests.pusher, "transaction", #"{"ops":[\#(operations.joined(separator: ","))]}"#)
        expect(answer.first?.json?["result"]?["results"] != nil, "\(answer)")
        expectEqual(tests.harness.take(tests.watcher), [], "\(operations)")
        expectEqual(tests.harness.engine.catalog.revision, before + (between == .nothing ? 0 : 1), "\(operations)")
      }
    }
  }

  @Test func movesThatCancelOutPublishNothing() {
    Self.expectNoDelta { [$0.move(0, 1), $0.move(1, 0)] }
    Self.expectNoDelta { [$0.move(0, 2), $0.move(2, 0)] }
    Self.expectNoDelta { [$0.move(0, 2), $0.move(0, 2), $0.move(0, 2)] }
  }

  @Test func restoredElementPublishesNothing() {
    Self.expectNoDelta { [$0.update(#"{"id":2,"p":1}"#), $0.update(#"{"id":2,"p":9}"#)] }
    Self.expectNoDelta { [#"{"method":"delete","params":{"feed":"k","id":2}}"#, $0.update(#"{"id":2,"p":9}"#)] }
    Self.expectNoDelta { _ in
      [
        #"{"method":"replace","params":{"feed":"a","elements":[9],"at":[1]}}"#,
        #"{"method":"set","params":{"feed":"a","elements":["x","y","z"]}}"#,
      ]
    }
  }

  /// The first element of `hi` returns as its last; in `lo` it did not move.
  @Test(arguments: Between.allCases, 0...2)
  func binWhoseRowsDidNotMoveGetsNoDelta(between: Between, place: Int) {
    var operations = [update(#"{"id":1,"p":1}"#), update(#"{"id":1,"p":9}"#)]
    if let operation = between.operation { operations.insert(operation, at: place) }
    _ = harness.ask(pusher, "transaction", #"{"ops":[\#(operations.joined(separator: ","))]}"#)
    let deltas = harness.take(watcher)
    expectEqual(deltas.count, 2)
    for delta in deltas {
      let params = delta.json?["params"]
      let section = params?["feed"]?.string == "shows" ? 1 : 0
      expectEqual(params?["added"]?.text, "[[\(section),1]]", "\(delta)")
      expect(params?["updated"]?.text == "[]" && params?["moves"]?.text == "[[0,0]]", "\(delta)")
      expect(params?["feed"]?.string != "k/lo")
    }
  }

  @Test(arguments: UInt64(1)...20)
  func randomMovesAndTheirReversePublishNothing(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    let moves = (0..<6).map { _ in (Int.random(in: 0..<3, using: &random), Int.random(in: 0..<3, using: &random)) }
    Self.expectNoDelta { tests in
      moves.map { tests.move($0.0, $0.1) } + moves.reversed().map { tests.move($0.1, $0.0) }
    }
  }
}
