import FeedModel
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// Definitions of a file that can only be applied one after another, though the file has no order.
struct ConfigurationOrderTests {
  @Test("a file may rename or remove a bin together with what shows it")
  func binsThatLeave() throws {
    let harness = EngineHarness()
    func file(_ bins: String...) -> String {
      let binList = bins.map { #"{"name":"\#($0)"}"# }.joined(separator: ",")
      let shown = bins.map { #""x/\#($0)""# }
      let children = shown.joined(separator: ",")
      let contents = shown.enumerated().map { #""T\#($0)":\#($1)"# }.joined(separator: ",")
      let feeds = [
        #"{"feed":"x","bins":[\#(binList)]}"#,
        #"{"feed":"list","kind":"composed","children":[\#(children)]}"#,
        #"{"feed":"tabs","kind":"segmented","children":[\#(children)]}"#,
        #"{"feed":"mix","kind":"slots","contents":{\#(contents)},"pattern":["T0","T1"]}"#,
        #"{"feed":"top","kind":"view","of":\#(shown[shown.count - 1])}"#,
      ]
      return #"{"feeds":[\#(feeds.joined(separator: ","))]}"#
    }
    let names = ["x", "list", "tabs", "mix", "top"]
    try expectEqual(harness.configure(file("p", "q")).defined, names)
    let client = harness.connect()
    _ = harness.ask(client, "update", #"{"feed":"x","elements":[{"id":1},{"id":2}]}"#)
    for name in ["list", "tabs", "mix"] { _ = harness.ask(client, "watch", #"{"feed":"\#(name)","initial":false}"#) }
    try expectEqual(harness.configure(file("p", "r")).redefined, names)
    let deltas = Dictionary(
      uniqueKeysWithValues: harness.take(client).compactMap { $0.json?["params"] }.map { ($0["feed"]?.string, $0) })
    expectEqual(deltas.count, 2, "the active child of tabs stays")
    expectEqual(deltas["list"]?["sections"]?.text, #"{"deleted":[1],"added":[{"at":1,"name":"x/r"}]}"#)
    expectEqual(deltas["list"]?["added"]?.text, "[[1,0],[1,1]]")
    expectEqual(deltas["mix"]?["deleted"]?.text, "[[0,1],[0,3]]")
    expectEqual(harness.engine.catalog.feeds["top"]?.shownFeeds.map(\.name), ["x/r"])
    try expectEqual(harness.configure(file("p")).redefined, names)
    for name in names.dropFirst() {
      expectEqual(harness.engine.catalog.feeds[name]?.shownFeeds.map(\.name), ["x/p"])
    }
  }

  @Test("a feed that shows a bin which leaves may have lost another feed when the file is executed")
  func childrenThatLeaveMeanwhile() throws {
    let harness = EngineHarness(isDurable: true)
    func file(_ bins: String...) -> String {
      let binList = bins.map { #"{"name":"\#($0)"}"# }.joined(separator: ",")
      let children = bins.map { #""x/\#($0)""# }.joined(separator: ",")
      return
        #"{"feeds":[{"feed":"x","bins":[\#(binList)]},{"feed":"list","kind":"composed","children":[\#(children)]}]}"#
    }
    try harness.configure(file("p", "q"))
    let client = harness.connect()
    _ = harness.ask(client, "define", #"{"feed":"z","kind":"single"}"#)
    _ = harness.ask(client, "insertChild", #"{"feed":"list","child":"z"}"#)
    harness.log?.isHeld = true
    harness.send(client, #"{"jsonrpc":"2.0","id":1,"method":"removeChild","params":{"feed":"list","child":"z"}}"#)
    harness.send(client, #"{"jsonrpc":"2.0","id":2,"method":"undefine","params":{"feed":"z"}}"#)
    try expectEqual(harness.configure(file("p")).redefined, ["x", "list"])
    expect(harness.engine.catalog.feeds["z"] != nil)
    harness.log?.isHeld = false
    harness.log?.store()
    for _ in 0..<3 { harness.turn() }
    expectEqual(harness.engine.failedConfigurations, 0)
    expect(harness.engine.catalog.feeds["z"] == nil)
    expectEqual(harness.engine.catalog.feeds["list"]?.shownFeeds.map(\.name), ["x/p"])
  }

  @Test("feeds of a file may show each other in reverse, also through a feed of a client")
  func feedsThatShowEachOtherInReverse() throws {
    let harness = EngineHarness()
    func file(_ first: String, _ second: String) -> String {
      func feed(_ name: String, _ children: String) -> String {
        #"{"feed":"\#(name)","kind":"composed","children":[\#(children)]}"#
      }
      return #"{"feeds":[\#(feed("a", first)),\#(feed("b", second))]}"#
    }
    try harness.configure(file("", #""a""#))
    _ = harness.ask(harness.connect(), "define", #"{"feed":"c","kind":"composed","children":["b"]}"#)
    try expectEqual(harness.configure(file(#""c""#, "")).redefined, ["a", "b"])
    expectEqual(harness.engine.catalog.feeds["a"]?.shownFeeds.map(\.name), ["c"])
  }
}
