import FeedServer
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// Short requests that take long, and many of them.
extension SlicedRequestTests {
  /// Each costs many steps, whatever its length.
  @Test(
    "requests over whose elements filters take long are sliced", arguments: Log.allCases,
    [
      ("update", #"{"feed":"slow","element":ELEMENT}"#), ("set", #"{"feed":"slow","elements":[ELEMENT]}"#),
      ("patch", #"{"feed":"slow","id":0,"patch":{"v":1}}"#), ("delete", #"{"feed":"plain","where":"FILTER"}"#),
      ("insert", #"{"feed":"array","element":ELEMENT}"#),
      ("transaction", #"{"ops":[{"method":"update","params":{"feed":"slow","element":ELEMENT}}]}"#),
    ])
  func slowFilters(_ log: Log, _ request: (method: String, params: String)) {
    let harness = EngineHarness(isDurable: log == .array, slices: SlicedWork("slices", slice: 0))
    let client = harness.connect()
    let filter = "@.a[?count($.a[?@ > 1]) == 7]"
    let bins = (0..<8).map { #"{"name":"b\#($0)","filter":"\#(filter)"},"# }.joined() + #"{"name":"all"}"#
    let values = (0..<100).map { "\($0 % 10)" }.joined(separator: ",")
    let element = { (id: Int) in #"{"id":\#(id),"a":[\#(values)]}"# }
    _ = harness.ask(client, "define", #"{"feed":"slow","kind":"collection","bins":[\#(bins)]}"#)
    _ = harness.ask(client, "define", #"{"feed":"plain","kind":"collection"}"#)
    _ = harness.ask(client, "define", #"{"feed":"array","kind":"array"}"#)
    for view in 0..<8 {
      _ = harness.ask(client, "define", #"{"feed":"v\#(view)","kind":"view","of":"array","filter":"\#(filter)"}"#)
    }
    _ = harness.ask(client, "update", #"{"feed":"slow","element":\#(element(0))}"#)
    for id in 0..<8 { _ = harness.ask(client, "update", #"{"feed":"plain","element":\#(element(id))}"#) }
    let params = request.params.replacing("ELEMENT", with: element(1)).replacing("FILTER", with: filter)
    harness.supply(client, Self.request(request.method, params))
    let turns = Self.turns(harness, until: client) { _ in }
    #expect(turns > 5)
    #expect(Self.value(harness.take(client))?["result"] != nil)
    // Short elements are judged at once.
    harness.supply(client, Self.request("update", #"{"feed":"slow","element":{"id":2,"a":[1]}}"#))
    #expect(Self.turns(harness, until: client) { _ in } <= 2)
  }

  /// A view that nobody watches runs its filter when a feed above counts its rows, and stops for others, who may ask for the same.
  @Test("a count of rows that stops for others is right")
  func countThatStops() {
    func answers(_ slices: (any SliceRunner)?) -> [String] {
      let harness = EngineHarness(slices: slices)
      let (client, reader) = (harness.connect(), harness.connect())
      let values = (0..<100).map { "\($0 % 10)" }.joined(separator: ",")
      let element = { (id: Int) in #"{"id":\#(id),"a":[\#(values)]}"# }
      _ = harness.ask(client, "define", #"{"feed":"a","kind":"array"}"#)
      let elements = (0..<8).map(element).joined(separator: ",")
      _ = harness.ask(client, "insert", #"{"feed":"a","at":0,"elements":[\#(elements)]}"#)
      func view(_ name: String, of source: String, _ count: Int) -> String {
        #"{"feed":"\#(name)","kind":"view","of":"\#(source)","filter":"@.a[?count($.a[?@ > 1]) > \#(count)]","replace":true}"#
      }
      _ = harness.ask(client, "define", view("v", of: "a", 1))
      _ = harness.ask(client, "define", #"{"feed":"p","kind":"composed","children":["v"]}"#)
      _ = harness.ask(client, "define", view("w", of: "p", 2))
      for round in 0..<3 {
        let operations = [
          #"{"method":"insert","params":{"feed":"a","at":0,"element":\#(element(10 + round))}}"#,
          #"{"method":"define","params":\#(view("v", of: "a", 3 + round))}"#,
          #"{"method":"define","params":\#(view("w", of: "p", 4 + round))}"#,
        ]
        harness.supply(client, Self.request("transaction", #"{"ops":[\#(operations.joined(separator: ","))]}"#))
        _ = Self.turns(harness, until: client) { _ in
          harness.supply(reader, Self.request("describe", #"{"feed":"p"}"#))
        }
        harness.turn()
        #expect(Self.value(harness.take(client))?["result"] != nil)
      }
      return ["v", "p", "w"].flatMap { harness.ask(client, "snapshot", #"{"feed":"\#($0)"}"#) }
    }
    expectEqual(answers(SlicedWork("slices", slice: 0, isEager: true)), answers(nil))
  }

  @Test("requests after the time of a turn wait for the next one", arguments: Log.allCases)
  func manyShortRequests(_ log: Log) {
    let harness = EngineHarness(isDurable: log == .array, slices: SlicedWork("slices", slice: 0))
    let client = harness.connect()
    _ = harness.ask(client, "define", #"{"feed":"a","kind":"array"}"#)
    harness.supply(
      client, (0..<100).flatMap { Self.request("insert", #"{"feed":"a","at":\#($0),"element":\#($0)}"#, id: $0) })
    var answers: [String] = []
    var turns = 0
    while answers.count < 100 && turns < 1000 {
      harness.turnOnce()
      turns += 1
      let more = harness.take(client)
      #expect(more.count <= 16)
      answers += more
    }
    expectEqual(answers.map { Value($0)?["id"]?.int ?? -1 }, Array(0..<100))
  }
}
