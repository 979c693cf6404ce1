import Testing

/// Seed 003, EDataSource: its calls with lists of indexes, animations, and items that name what draws them.
@Suite("seed003 EDataSource")
struct Seed003DataSourceTests {
  private let session: SeedSession

  init() throws {
    session = try SeedSession()
    try session.ask("define", #"{"feed":"items","kind":"array","type":"$.cell"}"#)
    try session.ask("insert", #"{"feed":"items","elements":[{"n":1,"cell":"MyCell"},{"n":2,"cell":"MyCell"}]}"#)
  }

  private func numbers() throws -> [String] {
    try session.ask("query", #"{"feed":"items","path":"$[*].n"}"#)["nodes"].elements.map(\.text)
  }

  /// `insertItems([MyItem(), MyItem()], at: [row 0, row 2], animation: .top)`: one after another, so the second index counts
  /// the first item.
  @Test func insertItems() throws {
    let watcher = try session.watch("items")
    let result = try session.ask(
      "insert",
      #"{"feed":"items","elements":[{"n":10,"cell":"MyCell"},{"n":20,"cell":"Big"}],"at":[0,2],"animation":"top"}"#)
    #expect(result.change == "-[] +[[0,0],[0,2]] ~[]")
    let delta = try watcher.delta()
    #expect(delta["animation"].string == "top")
    #expect(delta["types"].text == #"["MyCell","Big"]"#)
    #expect(try numbers() == ["10", "1", "20", "2"])
  }

  /// `deleteItems(at: [row 0, row 1, row 2], animation: .fade)`: all of the state before the call.
  @Test func deleteItems() throws {
    try session.ask("insert", #"{"feed":"items","elements":[{"n":3},{"n":4}]}"#)
    let watcher = try session.watch("items")
    try session.ask("remove", #"{"feed":"items","at":[0,1,2],"animation":"fade"}"#)
    let delta = try watcher.delta()
    #expect(delta.change == "-[[0,0],[0,1],[0,2]] +[] ~[]")
    #expect(delta["animation"].string == "fade")
    #expect(try numbers() == ["4"])
    #expect(try session.refusal("remove", #"{"feed":"items","at":[0,1]}"#) == -32005)
    #expect(try numbers() == ["4"])
  }

  /// `updateItems([…, …, …], at: [row 2, row 0, row 1], animation: .fade)`: items and indexes are paired in the given order.
  @Test func updateItems() throws {
    try session.ask("insert", #"{"feed":"items","elements":[{"n":3}]}"#)
    let watcher = try session.watch("items")
    try session.ask(
      "replace",
      #"{"feed":"items","elements":[{"n":"two"},{"n":"zero"},{"n":"one"}],"at":[2,0,1],"animation":"fade"}"#)
    let delta = try watcher.delta()
    #expect(delta.change == "-[] +[] ~[[0,0],[0,1],[0,2]]")
    #expect(delta["elements"].text == #"[{"n":"zero"},{"n":"one"},{"n":"two"}]"#)
    #expect(delta["animation"].string == "fade")
    // The hint is of that one change.
    try session.ask("move", #"{"feed":"items","from":0,"to":2}"#)
    #expect(try watcher.delta().has("animation") == false)
    #expect(try numbers() == [#""one""#, #""two""#, #""zero""#])
  }

  /// `get(indexPath:)`, and the cell that each item is drawn by.
  @Test func getAndDrawers() throws {
    try session.ask("insert", #"{"feed":"items","elements":[{"n":3,"cell":"Banner"},{"n":4}]}"#)
    let row = try session.ask("get", #"{"feed":"items","at":[0,1]}"#)
    #expect(row["element"].text == #"{"n":2,"cell":"MyCell"}"#)
    #expect(row["type"].string == "MyCell")
    let types = try session.ask("range", #"{"feed":"items"}"#)["types"]
    #expect(types.text == #"["MyCell","MyCell","Banner",null]"#)
  }
}
