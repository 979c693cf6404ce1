import FeedServer
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import FeedModel
@testable import ReferenceModel

/// Reads between the slices of a request see the state before.
extension SlicedRequestTests {
  /// The search for the feeds that selected rows come from stops too.
  @Test(arguments: Log.allCases) func readsRunBetweenSlicesOfASelection(_ log: Log) {
    let harness = Self.harness(log)
    let (writer, reader) = (harness.connect(), harness.connect())
    Self.fill(harness, writer, count: 300)
    for definition in [
      #"{"feed":"one","kind":"array","multiple":false}"#, #"{"feed":"p","kind":"composed","children":["c","one"]}"#,
      #"{"feed":"v","kind":"view","of":"p","sort":[{"by":"$.k"}]}"#,
    ] { _ = harness.ask(writer, "define", definition) }
    let rows = (0..<300).map { "[0,\($0)]" }.joined(separator: ",")
    harness.supply(writer, "select", #"{"feed":"v","at":[\#(rows)]}"#)
    var seen = 0
    let turns = Self.turns(harness, until: writer) { turn in
      if turn % 3 > 0 { return }
      harness.supply(reader, "selected", #"{"feed":"v"}"#)
      for answer in harness.take(reader).compactMap({ Value($0)?["result"]?["selected"] }) {
        // The last one may come after the selection.
        if answer.items.isEmpty { seen += 1 } else { expectEqual(answer.items.count, 300) }
      }
    }
    expect(turns > 6 && seen > 0, "\(turns) turns, \(seen) reads")
    expectEqual(Self.value(harness.take(writer))?["result"]?["selected"]?.items.count, 300)
  }

  /// A feed with other children is not read until the commit ends.
  @Test(arguments: Log.allCases, ["insertChild", "removeChild", "define"])
  func noReadSeesOtherChildrenBeforeTheirRevision(_ log: Log, _ method: String) throws {
    let harness = Self.harness(log)
    let (writer, reader) = (harness.connect(), harness.connect())
    Self.fill(harness, writer, count: 300)
    _ = harness.ask(writer, "define", #"{"feed":"a","kind":"array"}"#)
    let children = method == "insertChild" ? #"["a"]"# : #"["c","a"]"#
    _ = harness.ask(writer, "define", #"{"feed":"p","kind":"composed","children":\#(children)}"#)
    let count = { (answer: Value?) in answer?["result"]?["count"]?.int }
    let before = count(Self.value(harness.ask(reader, "describe", #"{"feed":"p"}"#)))
    let revision = Int(harness.engine.catalog.revision)
    let params =
      method == "define"
      ? #"{"feed":"p","kind":"composed","children":["a"],"replace":true}"# : #"{"feed":"p","child":"c"}"#
    harness.supply(writer, method, params)
    var others = 0
    _ = Self.turns(harness, until: writer) { _ in
      harness.supply(reader, "describe", #"{"feed":"p"}"#)
      let answers = harness.take(reader).map { Value($0) }
      others += answers.count { $0?["result"]?["revision"]?.int == revision && count($0) != before }
    }
    expectEqual(others, 0)
    expectEqual(Self.value(harness.take(writer))?["error"], nil)
  }

  @Test(arguments: Log.allCases, ["define", "set", "delete", "transaction", "view"])
  func readsBetweenSlicesSeeTheStateBefore(_ log: Log, _ method: String) throws {
    let harness = Self.harness(log)
    let (writer, reader) = (harness.connect(), harness.connect())
    Self.fill(harness, writer)
    let before = Self.value(harness.ask(reader, "snapshot", #"{"feed":"c"}"#))?["result"]
    let frame =
      switch method {
      case "define": EngineHarness.request("define", Self.rebinned)
      case "set": EngineHarness.request("set", #"{"feed":"c","elements":\#(Self.elements(40..<90, 1))}"#)
      case "delete": EngineHarness.request("delete", #"{"feed":"c","where":"@.k < 5"}"#)
      case "view":
        EngineHarness.request(
          "define", #"{"feed":"v","kind":"view","of":"c","filter":"@.k < 5","sort":[{"by":"$.k"}]}"#)
      default:
        EngineHarness.request(
          "transaction",
          #"{"ops":[{"method":"update","params":{"feed":"c","elements":\#(Self.elements(0..<60, 2))}},"#
            + #"{"method":"delete","params":{"feed":"c","where":"@.k < 5"}}]}"#)
      }
    harness.supply(writer, frame)
    var seen = 0
    let turns = Self.turns(harness, until: writer) { turn in
      if turn % 3 > 0 { return }
      harness.supply(reader, EngineHarness.request("snapshot", #"{"feed":"c"}"#) + EngineHarness.request("ping"))
      let answers = harness.take(reader).compactMap { Value($0)?["result"] }
      // When the change has taken effect, the memory of the state before is freed, also in slices.
      for answer in answers where answer["sections"] != nil && answer["revision"]?.int == 2 {
        let isSame = answer == before
        expect(isSame)
        seen += 1
      }
    }
    expect(turns > 20)
    expect(seen > 5, "reads are answered while the request is under way")
    expectEqual(Self.value(harness.take(writer))?["error"], nil)
    harness.turn()

    // The result is that of a request that is executed at once.
    let other = EngineHarness(isDurable: log == .array)
    let client = other.connect()
    Self.fill(other, client)
    other.deliver(client, frame)
    _ = other.take(client)
    for feed in method == "view" ? ["c", "v"] : ["c"] {
      let expected = Self.value(other.ask(client, "snapshot", #"{"feed":"\#(feed)"}"#))?["result"]
      _ = harness.take(reader)
      let found = Self.value(harness.ask(reader, "snapshot", #"{"feed":"\#(feed)"}"#))?["result"]
      expectEqual(found, expected)
    }
  }

  @Test("a feed that a short transaction changes is read while the transaction judges another", arguments: Log.allCases)
  func shortTransaction(_ log: Log) throws {
    let harness = EngineHarness(isDurable: log == .array, slices: SlicedWork("slices", slice: 0))
    let (writer, reader) = (harness.connect(), harness.connect())
    Self.fill(harness, writer, count: 10_000)
    harness.turn()
    _ = harness.ask(writer, "define", #"{"feed":"d","kind":"collection"}"#)
    harness.supply(writer, "update", #"{"feed":"d","elements":\#(Self.elements(0..<10_000))}"#)
    harness.turn()
    _ = harness.take(writer)
    harness.supply(
      writer, "transaction",
      #"{"ops":[{"method":"update","params":{"feed":"d","element":{"id":1,"v":9}}},"#
        + #"{"method":"delete","params":{"feed":"c","where":"@.k < 5"}}]}"#)
    var seen = 0
    let turns = Self.turns(harness, until: writer) { _ in
      harness.supply(reader, "get", #"{"feed":"d","id":1}"#)
      for answer in harness.take(reader) where answer.contains(#""v":0"#) { seen += 1 }
    }
    expect(turns > 20)
    expect(seen > turns / 2, "\(seen) answers in \(turns) turns")
    harness.turn()
    _ = harness.take(reader)
    expectEqual(harness.ask(reader, "get", #"{"feed":"d","id":1}"#).first?.contains(#""v":9"#), true)
  }

  /// Otherwise each read of a view would evaluate all rows of its source.
  @Test("views of other feeds are read from their indexes while a feed changes in place", arguments: Log.allCases)
  func otherViews(_ log: Log) {
    let harness = EngineHarness(isDurable: log == .array, slices: SlicedWork("slices", slice: 0))
    let (writer, reader) = (harness.connect(), harness.connect())
    Self.fill(harness, writer, count: 1000)
    _ = harness.ask(writer, "define", #"{"feed":"a","kind":"array"}"#)
    _ = harness.ask(writer, "insert", #"{"feed":"a","elements":\#(Self.elements(0..<3))}"#)
    _ = harness.ask(writer, "define", #"{"feed":"v","kind":"view","of":"a","sort":[{"by":"$.k"}]}"#)
    // A longer request would change a copy.
    let operations = (0..<1400).map {
      #"{"method":"update","params":{"feed":"c","element":{"id":\#($0 % 1000),"v":\#($0)}}}"#
    }
    harness.supply(writer, "transaction", #"{"ops":[\#(operations.joined(separator: ","))]}"#)
    var (waiting, behind, seen) = (0, 0, 0)
    _ = Self.turns(harness, until: writer) { _ in
      if harness.isExclusive { waiting += 1 }
      if harness.isExclusive && harness.engine.catalog.graph.counts.isChanging { behind += 1 }
      harness.supply(reader, "get", #"{"feed":"v","at":[0,2]}"#)
      for answer in harness.take(reader) where answer.contains(#"{"id":1,"k":7,"v":0}"#) { seen += 1 }
    }
    expectEqual(behind, 0)
    expect(waiting > 5 && seen > 5, "\(waiting) turns, \(seen) reads")
    expectEqual(Self.value(harness.take(writer))?["error"], nil)
  }

  @Test("reads between the slices of a request that changes an array see the rows before", arguments: Log.allCases)
  func arrays(_ log: Log) throws {
    let requests = [
      ("set", #"{"feed":"a","elements":\#(Self.elements(40..<90, 1))}"#),
      ("insert", #"{"feed":"a","at":[3,9],"elements":\#(Self.elements(100..<102))}"#),
      ("update", #"{"feed":"a","elements":\#(Self.elements(20..<50, 2))}"#),
      ("delete", #"{"feed":"a","where":"@.k < 5"}"#), ("remove", #"{"feed":"a","at":[0,5,7]}"#),
      ("move", #"{"feed":"a","id":7,"to":1}"#),
      ("define", #"{"feed":"a","kind":"array","id":"$.id","type":"$.k","retain":{"count":40},"replace":true}"#),
      (
        "transaction",
        #"{"ops":[{"method":"set","params":{"feed":"a","elements":\#(Self.elements(10..<70, 3))}},"#
          + #"{"method":"delete","params":{"feed":"a","where":"@.k < 5"}}]}"#
      ),
    ]
    for (method, params) in requests {
      let harnesses = [Self.harness(log), EngineHarness(isDurable: log == .array)]
      var results: [Value?] = []
      for harness in harnesses {
        let (writer, reader) = (harness.connect(), harness.connect())
        _ = harness.ask(writer, "define", #"{"feed":"a","kind":"array","id":"$.id"}"#)
        _ = harness.ask(writer, "update", #"{"feed":"a","elements":\#(Self.elements(0..<60))}"#)
        let before = Self.value(harness.ask(reader, "snapshot", #"{"feed":"a"}"#))?["result"]
        harness.supply(writer, method, params)
        var seen = 0
        let turns = Self.turns(harness, until: writer) { turn in
          if turn % 3 > 0 { return }
          harness.supply(reader, "snapshot", #"{"feed":"a"}"#)
          for answer in harness.take(reader).compactMap({ Value($0)?["result"] }) where answer["revision"]?.int == 2 {
            let isSame = answer == before
            expect(isSame, "\(method)")
            seen += 1
          }
        }
        if harness === harnesses[0] { expect(turns > 5 && seen > 0, "\(method): \(turns) turns, \(seen) reads") }
        expectEqual(Self.value(harness.take(writer))?["error"], nil)
        harness.turn()
        _ = harness.take(reader)
        results.append(Self.value(harness.ask(reader, "snapshot", #"{"feed":"a"}"#))?["result"])
      }
      let isSame = results[0] == results[1]
      expect(isSame, "\(method)")
    }
  }
}
