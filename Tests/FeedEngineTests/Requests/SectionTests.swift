import FeedModel
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// Collections with one section for each value.
struct SectionTests {
  private let harness = EngineHarness()
  private let id: ConnectionID

  init() {
    id = harness.connect()
    _ = harness.ask(
      id, "define",
      #"{"feed":"days","kind":"collection","section":"$.day","bins":[{"name":"all","sort":[{"by":"$.n"}]}]}"#)
  }

  private func ask(_ method: String, _ params: String, by other: ConnectionID? = nil) -> Value? {
    harness.ask(other ?? id, method, params).compactMap(\.json).last
  }

  /// The answer to an update of `days`.
  private func push(_ elements: String) -> Value? {
    ask("update", #"{"feed":"days","elements":[\#(elements)]}"#)?["result"]
  }

  /// The sections of a feed as `name: rows`.
  private func sections(of feed: String = "days") -> [String] {
    (ask("describe", #"{"feed":"\#(feed)"}"#)?["result"]?["sections"]?.items ?? []).map {
      "\($0["name"]?.string ?? ""): \($0["count"]?.int ?? -1)"
    }
  }

  @Test func sectionsExistWhileTheyHaveRowsInTheOrderOfTheirValues() {
    expectEqual(sections(), [])
    let first = push(#"{"id":1,"day":"tue","n":1},{"id":2,"day":"mon","n":2},{"id":3,"day":"tue","n":0}"#)
    expectEqual(first?["added"]?.text, "[[0,0],[1,0],[1,1]]")
    expectEqual(
      first?["sections"]?.text,
      #"{"deleted":[],"added":[{"at":0,"name":"days/mon","key":"mon"},{"at":1,"name":"days/tue","key":"tue"}]}"#)
    expectEqual(sections(), ["days/mon: 1", "days/tue: 2"])
    let gone = ask("delete", #"{"feed":"days","id":2}"#)?["result"]
    expectEqual(gone?["deleted"]?.text, "[]")
    expectEqual(gone?["sections"]?.text, #"{"deleted":[0],"added":[]}"#)
    expectEqual(sections(), ["days/tue: 2"])
  }

  @Test func rowWithAChangedValueMovesToAnotherSection() {
    _ = push(#"{"id":1,"day":"mon","n":1},{"id":2,"day":"mon","n":2},{"id":3,"day":"tue","n":3}"#)
    let moved = push(#"{"id":2,"day":"tue","n":2}"#)
    expectEqual(moved?["deleted"]?.text, "[[0,1]]")
    expectEqual(moved?["added"]?.text, "[[1,0]]")
    expectEqual(moved?["moves"]?.text, "[[0,0]]")
    // Its position in the list of all rows is unchanged.
    let inPlace = push(#"{"id":2,"day":"mon","n":9}"#)
    expectEqual(inPlace?["deleted"]?.text, "[[1,0]]")
    expectEqual(inPlace?["added"]?.text, "[[0,1]]")
    expectEqual(inPlace?["moves"]?.text, "[[0,0]]")
  }

  @Test func removingTheLastRowRemovesTheSection() {
    _ = push(#"{"id":1,"day":"mon"},{"id":2,"day":"tue"}"#)
    let moved = push(#"{"id":1,"day":"wed"}"#)
    expectEqual(moved?["deleted"]?.text, "[]")
    expectEqual(moved?["added"]?.text, "[[1,0]]")
    expectEqual(moved?["moves"], nil)
    expectEqual(moved?["sections"]?.text, #"{"deleted":[0],"added":[{"at":1,"name":"days/wed","key":"wed"}]}"#)
  }

  @Test func sectionRefilledWithinARequestStays() {
    _ = push(#"{"id":1,"day":"mon"},{"id":2,"day":"tue"}"#)
    let changed = push(#"{"id":1,"day":"tue"},{"id":2,"day":"mon"}"#)
    expectEqual(changed?["sections"], nil)
    expectEqual(changed?["deleted"]?.text, "[[0,0],[1,0]]")
    expectEqual(changed?["added"]?.text, "[[0,0],[1,0]]")
    expectEqual(changed?["moves"]?.text, "[[0,1],[1,0]]")
    let set = ask("set", #"{"feed":"days","elements":[{"id":9,"day":"tue"},{"id":2,"day":"mon"}]}"#)?["result"]
    expectEqual(set?["sections"], nil)
    expectEqual(set?["deleted"]?.text, "[[1,0]]")
    expectEqual(set?["added"]?.text, "[[1,0]]")
  }

  @Test func valuesNameSections() {
    let values = [
      #""b""#, #""a\u0062""#, "2", "10", "1.0", "1", "10e-1", "-0.50", "1e3", "15e299", "false", "true", "null", #""""#,
      "[1]", "{}", "\"\(String(repeating: "x", count: 2000))\"",
    ]
    for (place, value) in values.enumerated() { _ = push(#"{"id":\#(place),"day":\#(value)}"#) }
    _ = push(#"{"id":"none"}"#)
    expectEqual(
      sections(),
      [
        "days/false: 1", "days/true: 1", "days/-0.5: 1", "days/1: 3", "days/2: 1", "days/10: 1", "days/1000: 1",
        "days/1.5e300: 1", "days/ab: 1", "days/b: 1", "days: 6",
      ])
    let reversed = #"{"feed":"days","kind":"collection","section":"$.day","sectionOrder":"descending","replace":true}"#
    expectEqual(ask("define", reversed)?["error"], nil)
    expectEqual(sections().first, "days/b: 1")
    expectEqual(sections().last, "days: 6")
  }

  @Test func definitionsAreChecked() {
    func code(_ members: String) -> Value? { ask("define", #"{"feed":"x","kind":"collection",\#(members)}"#)?["error"] }
    expectEqual(code(#""section":"$.a","bins":[{"name":"a"},{"name":"b"}]"#)?["data"]?["member"]?.string, "section")
    expectEqual(code(#""sectionOrder":"descending""#)?["data"]?["member"]?.string, "sectionOrder")
    expectEqual(code(#""section":"$.a","sectionOrder":"up""#)?["data"]?["member"]?.string, "sectionOrder")
    expectEqual(code(#""section":"$..a""#)?["code"]?.int, -32004)
    let described = ask("describe", #"{"feed":"days"}"#)?["result"]
    expectEqual(described?["section"]?.string, "$.day")
    expectEqual(described?["sectionOrder"], nil)
    expectEqual(ask("watch", #"{"feed":"days/all"}"#)?.errorCode, -32000)
  }

  @Test func replacingTheDefinitionKeepsSectionsOfTheSameName() {
    _ = push(#"{"id":1,"day":"mon","n":2},{"id":2,"day":"mon","n":1},{"id":3,"day":"tue","n":1}"#)
    let watcher = harness.connect()
    _ = harness.ask(watcher, "watch", #"{"feed":"days"}"#)
    _ = ask("define", #"{"feed":"days","kind":"collection","section":"$.day","replace":true}"#)
    let sorted = harness.take(watcher).compactMap(\.json).last?["params"]
    expectEqual(sorted?["sections"], nil)
    expectEqual(sorted?["moves"]?.text, "[[0,0]]")
    _ = ask("define", #"{"feed":"days","kind":"collection","replace":true}"#)
    let flat = harness.take(watcher).compactMap(\.json).last?["params"]
    expectEqual(flat?["sections"]?.text, #"{"deleted":[0,1],"added":[{"at":0,"name":"days/all"}]}"#)
    expectEqual(flat?["added"]?.text, "[[0,0],[0,1],[0,2]]")
    _ = ask("define", #"{"feed":"p","kind":"composed","children":["days/all"]}"#)
    let refused = ask("define", #"{"feed":"days","kind":"collection","section":"$.day","replace":true}"#)
    expectEqual(refused?.errorCode, -32001)
    _ = ask("undefine", #"{"feed":"p"}"#)
    _ = ask("define", #"{"feed":"days","kind":"collection","section":"$.n","replace":true}"#)
    expectEqual(sections(), ["days/1: 2", "days/2: 1"])
  }

  @Test func rowsEvictedByARedefinitionAreNotListedAgain() {
    _ = push(#"{"id":1,"day":"mon"},{"id":2,"day":"tue"},{"id":3,"day":"tue"},{"id":4,"day":"wed"}"#)
    let fewer = #"{"feed":"days","kind":"collection","section":"$.day","retain":{"count":2},"replace":true}"#
    expectEqual(ask("define", fewer)?["error"], nil)
    expectEqual(sections(), ["days/tue: 1", "days/wed: 1"])
    let deleted = ask("delete", #"{"feed":"days","id":4}"#)?["result"]
    expectEqual(deleted?["sections"]?.text, #"{"deleted":[1],"added":[]}"#)
    expectEqual(deleted?["deleted"]?.text, "[]")
  }

  @Test func sectionsCountTowardsTheLimitsOfTheFeedAndItsParents() {
    let harness = EngineHarness { $0.maxSections = 3 }
    let id = harness.connect()
    func ask(_ method: String, _ params: String) -> Value? { harness.ask(id, method, params).last?.json }
    _ = ask("define", #"{"feed":"c","kind":"collection","section":"$.s"}"#)
    expectEqual(
      ask("update", #"{"feed":"c","elements":[{"id":1,"s":1},{"id":2,"s":2},{"id":3,"s":3}]}"#)?["error"], nil)
    let refused = ask("update", #"{"feed":"c","elements":[{"id":1,"s":2},{"id":4,"s":4},{"id":5,"s":5}]}"#)
    expectEqual(refused?.errorData?["limit"]?.string, "maxSections")
    expectEqual(ask("describe", #"{"feed":"c"}"#)?["result"]?["counts"]?.text, "[1,1,1]")
    // Removing the last row of a section allows another section.
    expectEqual(ask("update", #"{"feed":"c","element":{"id":1,"s":9}}"#)?["error"], nil)
    _ = ask("delete", #"{"feed":"c","id":1}"#)
    _ = ask("define", #"{"feed":"a","kind":"array"}"#)
    _ = ask("define", #"{"feed":"p","kind":"composed","children":["a","c"]}"#)
    let above = ask("update", #"{"feed":"c","element":{"id":1,"s":1}}"#)
    expectEqual(above?.errorData?["limit"]?.string, "maxSections")
    expectEqual(ask("update", #"{"feed":"c","element":{"id":2,"s":1}}"#)?["error"], nil)
    expectEqual(ask("describe", #"{"feed":"p"}"#)?["result"]?["counts"]?.text, "[0,1,1]")
    expectEqual(ask("define", #"{"feed":"c","kind":"collection","section":"$.id","replace":true}"#)?["error"], nil)
  }

  /// Whatever the steps of a request do, the sections after it count.
  @Test func sectionsOfARequestCountAfterAllItsSteps() {
    let harness = EngineHarness { $0.maxSections = 3 }
    let id = harness.connect()
    func ask(_ method: String, _ params: String) -> Value? { harness.ask(id, method, params).last?.json }
    func counts(_ feed: String) -> String? { ask("describe", #"{"feed":"\#(feed)"}"#)?["result"]?["counts"]?.text }
    func limit(_ method: String, _ params: String) -> String? {
      ask(method, params)?.errorData?["limit"]?.string
    }
    _ = ask("define", #"{"feed":"c","kind":"collection","section":"$.s"}"#)
    _ = ask("define", #"{"feed":"p","kind":"composed","children":["c"]}"#)
    let start = #"{"id":1,"s":"a"},{"id":2,"s":"a"},{"id":3,"s":"b"},{"id":4,"s":"c"}"#
    expectEqual(ask("update", #"{"feed":"c","elements":[\#(start)]}"#)?["error"], nil)
    // The first of two rows leaves a section that the second one empties.
    expectEqual(ask("update", #"{"feed":"c","elements":[{"id":1,"s":"n"},{"id":2,"s":"n"}]}"#)?["error"], nil)
    expectEqual(counts("p"), "[1,1,2]")
    let patches = #"[{"id":1,"patch":{"s":"x"}},{"id":2,"patch":{"s":"x"}}]"#
    expectEqual(ask("patch", #"{"feed":"c","patches":\#(patches)}"#)?["error"], nil)
    expectEqual(ask("set", #"{"feed":"c","elements":[\#(start)]}"#)?["error"], nil)
    expectEqual(counts("p"), "[2,1,1]")
    // One of two rows leaves, and the other stays.
    let before = harness.ask(id, "snapshot", #"{"feed":"p"}"#)
    for (method, params) in [
      ("update", #""element":{"id":1,"s":"d"}"#), ("update", #""elements":[{"id":1,"s":"d"}]"#),
      ("patch", #""id":1,"patch":{"s":"d"}"#), ("update", #""elements":[{"id":5,"s":"d"},{"id":6,"s":"e"}]"#),
      ("set", #""elements":[{"id":1,"s":"a"},{"id":2,"s":"b"},{"id":3,"s":"c"},{"id":4,"s":"d"}]"#),
    ] {
      expectEqual(limit(method, #"{"feed":"c",\#(params)}"#), "maxSections", "\(method) \(params)")
      expectEqual(harness.ask(id, "snapshot", #"{"feed":"p"}"#), before, "\(method) \(params)")
    }
    // Elements that are evicted leave room.
    _ = ask("define", #"{"feed":"r","kind":"collection","section":"$.s","retain":{"count":2}}"#)
    let five = (1...5).map { #"{"id":\#($0),"s":\#($0)}"# }.joined(separator: ",")
    expectEqual(ask("update", #"{"feed":"r","elements":[\#(five)]}"#)?["error"], nil)
    expectEqual(counts("r"), "[1,1]")
    expectEqual(
      ask("define", #"{"feed":"r","kind":"collection","section":"$.s","replace":true,"retain":{"count":3}}"#)?["error"],
      nil)
    expectEqual(ask("update", #"{"feed":"r","element":{"id":6,"s":6}}"#)?["error"], nil)
    expectEqual(ask("update", #"{"feed":"r","element":{"id":7,"s":7}}"#)?["error"], nil)
    expectEqual(counts("r"), "[1,1,1]")
  }

  @Test func refusedRequestLeavesSectionsUnchanged() {
    _ = push(#"{"id":1,"day":"mon"},{"id":2,"day":"tue"}"#)
    _ = ask("define", #"{"feed":"home","kind":"composed","children":["days"]}"#)
    let refused = push(#"{"id":1,"day":"wed"},{"id":3,"day":"thu"},{"day":"no identity"}"#)
    expectEqual(refused, nil)
    expectEqual(sections(), ["days/mon: 1", "days/tue: 1"])
    let transaction = ask(
      "transaction",
      #"{"ops":[{"method":"delete","params":{"feed":"days","ids":[1,2]}},{"method":"put","params":{"feed":"no"}}]}"#)
    expectEqual(transaction?.errorCode, -32000)
    expectEqual(sections(of: "home"), ["days/mon: 1", "days/tue: 1"])
    expectEqual(
      push(#"{"id":1,"day":"fri"}"#)?["sections"]?.text,
      #"{"deleted":[0],"added":[{"at":0,"name":"days/fri","key":"fri"}]}"#)
  }

  @Test func resumedWatchReceivesMissedSectionsInOneDelta() {
    _ = push(#"{"id":1,"day":"mon"}"#)
    let revision = ask("describe", #"{"feed":"days"}"#)?["result"]?["revision"]?.int ?? 0
    _ = push(#"{"id":2,"day":"sun"}"#)
    _ = push(#"{"id":1,"day":"sun"}"#)
    let watcher = harness.connect()
    let frames = harness.ask(watcher, "watch", #"{"feed":"days","since":{"epoch":"test","revision":\#(revision)}}"#)
    expectEqual(frames.first?.json?["result"]?["resumed"]?.bool, true)
    let delta = frames.last?.json?["params"]
    expectEqual(delta?["sections"]?.text, #"{"deleted":[0],"added":[{"at":0,"name":"days/sun","key":"sun"}]}"#)
    expectEqual(delta?["elements"]?.text, #"[{"id":2,"day":"sun"},{"id":1,"day":"sun"}]"#)
  }
}
