import TestSupport
import Testing

/// Arrays through the socket: edits at several rows, animation hints, and types of rows.
@Suite("Editing arrays")
struct ListEditingTests {
  private let session: FeedSession

  init() throws {
    session = try FeedSession()
    try session.ask("define", #"{"feed":"items","kind":"array","type":"$.cell"}"#)
    try session.ask("insert", #"{"feed":"items","elements":[{"n":1,"cell":"MyCell"},{"n":2,"cell":"MyCell"}]}"#)
  }

  private func numbers() throws -> [String] {
    try session.ask("query", #"{"feed":"items","path":"$[*].n"}"#)["nodes"].elements.map(\.text)
  }

  /// Elements are inserted one after another, so the second row counts the first element.
  @Test("Insert at several rows")
  func insert() throws {
    let watcher = try session.watch("items")
    let result = try session.ask(
      "insert",
      #"{"feed":"items","elements":[{"n":10,"cell":"MyCell"},{"n":20,"cell":"Big"}],"at":[0,2],"animation":"top"}"#)
    expectEqual(result.change, "-[] +[[0,0],[0,2]] ~[]")
    let delta = try watcher.delta()
    expectEqual(delta["animation"].string, "top")
    expectEqual(delta["types"], #"["MyCell","Big"]"#)
    try expectEqual(numbers(), ["10", "1", "20", "2"])
  }

  /// All rows are positions before the call.
  @Test("Remove several rows")
  func remove() throws {
    try session.ask("insert", #"{"feed":"items","elements":[{"n":3},{"n":4}]}"#)
    let watcher = try session.watch("items")
    try session.ask("remove", #"{"feed":"items","at":[0,1,2],"animation":"fade"}"#)
    let delta = try watcher.delta()
    expectEqual(delta.change, "-[[0,0],[0,1],[0,2]] +[] ~[]")
    expectEqual(delta["animation"].string, "fade")
    try expectEqual(numbers(), ["4"])
    try expectEqual(session.refusal("remove", #"{"feed":"items","at":[0,1]}"#), -32005)
    try expectEqual(numbers(), ["4"])
  }

  /// Elements and rows are paired in the given order.
  @Test("Replace several rows, in any order")
  func replace() throws {
    try session.ask("insert", #"{"feed":"items","elements":[{"n":3}]}"#)
    let watcher = try session.watch("items")
    try session.ask(
      "replace",
      #"{"feed":"items","elements":[{"n":"two"},{"n":"zero"},{"n":"one"}],"at":[2,0,1],"animation":"fade"}"#)
    let delta = try watcher.delta()
    expectEqual(delta.change, "-[] +[] ~[[0,0],[0,1],[0,2]]")
    expectEqual(delta["elements"], #"[{"n":"zero"},{"n":"one"},{"n":"two"}]"#)
    expectEqual(delta["animation"].string, "fade")
    // The hint belongs to one change only.
    try session.ask("move", #"{"feed":"items","from":0,"to":2}"#)
    try expectEqual(watcher.delta().has("animation"), false)
    try expectEqual(numbers(), [#""one""#, #""two""#, #""zero""#])
  }

  @Test("Rows carry their types")
  func types() throws {
    try session.ask("insert", #"{"feed":"items","elements":[{"n":3,"cell":"Banner"},{"n":4}]}"#)
    let row = try session.ask("get", #"{"feed":"items","at":[0,1]}"#)
    expectEqual(row["element"], #"{"n":2,"cell":"MyCell"}"#)
    expectEqual(row["type"].string, "MyCell")
    let types = try session.ask("range", #"{"feed":"items"}"#)["types"]
    expectEqual(types.text, #"["MyCell","MyCell","Banner",null]"#)
  }
}
