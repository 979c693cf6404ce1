import TestSupport
import Testing

/// A collection with three filtered bins through the socket.
@Suite("Bins of a collection")
struct BinTests {
  private let session: FeedSession

  init() throws {
    session = try FeedSession()
    try session.ask(
      "define",
      """
      {"feed":"mine","kind":"collection","bins":[{"name":"a","filter":"match(@.value, 'a.*')"},\
      {"name":"b","filter":"match(@.value, 'b.*')"},{"name":"c","filter":"match(@.value, 'c.*')"}]}
      """)
  }

  private func update(_ id: Int, _ value: String) throws -> JSONValue {
    try session.ask("update", "{\"feed\":\"mine\",\"element\":{\"id\":\(id),\"value\":\"\(value)\"}}")
  }

  @Test("An update adds, updates, moves or deletes")
  func update() throws {
    let watcher = try session.watch("mine")
    try expectEqual(update(1, "apple").change, "-[] +[[0,0]] ~[]")
    try expectEqual(watcher.delta()["elements"], #"[{"id":1,"value":"apple"}]"#)
    try expectEqual(update(2, "avocado").change, "-[] +[[0,1]] ~[]")
    try expectEqual(update(3, "banana").change, "-[] +[[1,0]] ~[]")
    // Present and still accepted: updated. Equal: unchanged.
    try expectEqual(update(1, "apricot").change, "-[] +[] ~[[0,0]]")
    let same = try update(1, "apricot")
    expectEqual(same.change, "-[] +[] ~[]")
    expectEqual(same["revision"].int, (try session.ask("sync", "{}")["revision"].int))
    // Accepted by another bin: moved.
    let moved = try update(1, "cherry")
    expectEqual(moved.change, "-[[0,0]] +[[2,0]] ~[]")
    expectEqual(moved["moves"], "[[0,0]]")
    // Accepted by no bin: deleted.
    try expectEqual(update(1, "date").change, "-[[2,0]] +[] ~[]")
    try expectEqual(update(9, "egg").change, "-[] +[] ~[]")
    try expectEqual(watcher.notifications().count, 5)
  }

  @Test("Deleting an absent element changes nothing")
  func delete() throws {
    _ = try update(1, "apple")
    _ = try update(2, "avocado")
    try expectEqual(session.ask("delete", #"{"feed":"mine","id":1}"#).change, "-[[0,0]] +[] ~[]")
    try expectEqual(session.ask("delete", #"{"feed":"mine","id":1}"#).change, "-[] +[] ~[]")
    try expectEqual(session.rows("mine"), [[#"{"id":2,"value":"avocado"}"#], [], []])
  }

  @Test("Sections, counts and elements are read by position")
  func reading() throws {
    _ = try update(1, "apple")
    _ = try update(2, "banana")
    _ = try update(3, "blueberry")
    let feed = try session.ask("describe", #"{"feed":"mine"}"#)
    expectEqual(feed["sections"].elements.compactMap { $0["name"].string }, ["mine/a", "mine/b", "mine/c"])
    expectEqual(feed["counts"], "[1,2,0]")
    let element = try session.ask("get", #"{"feed":"mine","at":[1,1]}"#)
    expectEqual(element["element"], #"{"id":3,"value":"blueberry"}"#)
    try expectEqual(session.ask("get", #"{"feed":"mine","at":[1,2]}"#)["element"], "null")
  }

  @Test("Redefined bins filter the existing elements")
  func replacedBins() throws {
    _ = try update(1, "apple")
    _ = try update(2, "banana")
    let watcher = try session.watch("mine")
    try session.ask(
      "define",
      """
      {"feed":"mine","kind":"collection","replace":true,"bins":[{"name":"a","filter":"match(@.value, '[ab].*')"},\
      {"name":"c","filter":"match(@.value, 'c.*')"}]}
      """)
    let delta = try watcher.delta()
    expectEqual(delta.change, "-[] +[[0,1]] ~[]")
    expectEqual(delta["sections"], #"{"deleted":[1],"added":[]}"#)
    try expectEqual(session.rows("mine"), [[#"{"id":1,"value":"apple"}"#, #"{"id":2,"value":"banana"}"#], []])
  }

  @Test("An element without identity makes the whole request fail")
  func withoutIdentity() throws {
    try expectEqual(session.refusal("update", #"{"feed":"mine","element":{"value":"apple"}}"#), -32003)
    try expectEqual(
      session.refusal("update", #"{"feed":"mine","elements":[{"id":1,"value":"a"},{"id":null}]}"#), -32003)
    try expectEqual(session.rows("mine"), [[], [], []])
  }
}
