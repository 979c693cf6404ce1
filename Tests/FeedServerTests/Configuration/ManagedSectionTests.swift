import FeedSQLite
import FeedSystem
import Glibc
import TestSupport
import Testing

/// A managed feed shows the rows of an SQLite database that other programs write.
@Suite("Managed feeds, end to end")
struct ManagedSectionTests {
  private static let contacts = """
    CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT, circle TEXT);
    INSERT INTO person VALUES (1, 'Dad', 'family'), (2, 'Mum', 'family'), (3, 'Best mate', 'friends');
    """

  private static let configuration = """
    {"feeds": [
      {"feed": "library", "kind": "composed", "children": ["people", "notes"]},
      {"feed": "people", "kind": "managed", "database": "contacts.sqlite", "section": "circle",
       "query": "SELECT id, name, circle FROM person ORDER BY circle, name"},
      {"feed": "notes", "kind": "array"}]}
    """

  /// A watcher receives the commits of another program as changes of single rows.
  @Test(arguments: ["DELETE", "WAL"]) func contactsInTwoGroups(mode: String) throws {
    let set = try ConfiguredDaemon(Self.configuration, contacts: "PRAGMA journal_mode = \(mode);" + Self.contacts)
    let client = try set.watch("library")
    _ = try client.receive(having: "people/family", "people/friends")
    let other = try set.open()
    try other.execute("UPDATE person SET name = 'Mother' WHERE id = 2")
    _ = try client.receive(having: #""updated":[[0,1]]"#, #"{"id":2,"name":"Mother","circle":"family"}"#)
    try other.execute("UPDATE person SET name = 'Aaron' WHERE id = 2")
    _ = try client.receive(having: #""deleted":[[0,1]],"added":[[0,0]]"#, #""moves":[[0,0]]"#)
    try other.execute("BEGIN; DELETE FROM person WHERE id = 3; INSERT INTO person VALUES (4, 'Kim', 'work'); COMMIT")
    let noID = try set.ask("get", #"{"feed":"people","id":null}"#)["error"]
    expect(noID["code"].int == -32003 && noID["data"].text == #"{"feed":"people","index":0}"#)
    _ = try client.receive(
      having: #""sections":{"deleted":[1],"added":[{"at":1,"name":"people/work","key":"work"}]}"#, "Kim")
    let snapshot = try set.ask("snapshot", #"{"feed":"library"}"#)
    let sections = snapshot["result"]["sections"].elements
    expectEqual(sections.map { $0["name"].string }, ["people/family", "people/work", "notes"])
    expectEqual(sections.map { $0["count"].int }, [2, 1, 0])
    try expectEqual(set.daemon.stop(), 0)
  }

  /// The state contains only the definition of a managed feed; its rows are read again.
  @Test(arguments: [SIGTERM, SIGKILL]) func rowsAreReadAgainAfterARestart(signal: Int32) throws {
    let set = try ConfiguredDaemon(Self.configuration, contacts: Self.contacts, isKept: true)
    for _ in 0..<3 {
      let client = try set.watch("library")
      _ = try client.receive(having: "Best mate")
      try set.restart(signal: signal)
    }
  }

  /// A restart ends the selections of feeds that show managed rows, also of other rows of theirs.
  @Test(arguments: [SIGTERM, SIGKILL]) func selectionsOfManagedRowsEndWithARestart(signal: Int32) throws {
    let set = try ConfiguredDaemon(Self.configuration, contacts: Self.contacts, isKept: true)
    let client = try set.watch("people")
    _ = try client.receive(having: "Best mate")
    for definition in [
      #"{"feed":"view","kind":"view","of":"people"}"#, #"{"feed":"tabs","kind":"segmented","children":["people"]}"#,
      #"{"feed":"slots","kind":"slots","pattern":["A"],"repeatables":["A"],"contents":{"A":"people"}}"#,
    ] { try expect(set.ask("define", definition)["result"]["revision"].int != nil) }
    _ = try set.ask("insert", #"{"feed":"notes","elements":[1]}"#)
    func selected(_ feed: String) throws -> String {
      try set.ask("selected", #"{"feed":"\#(feed)"}"#)["result"]["selected"].text
    }
    for (feed, path) in [
      ("people", "[0,1]"), ("view", "[0,2]"), ("tabs", "[1,0]"), ("slots", "[0,0]"), ("library", "[2,0]"),
      ("notes", "[0,0]"),
    ] {
      _ = try set.ask("select", #"{"feed":"\#(feed)","at":\#(path)}"#)
      try expectEqual(selected(feed), "[\(path)]")
    }
    try set.restart(signal: signal)
    let restarted = try set.watch("people")
    _ = try restarted.receive(having: "Best mate")
    for feed in ["people", "view", "tabs", "slots", "library"] { try expectEqual(selected(feed), "[]", "\(feed)") }
    try expectEqual(selected("notes"), "[[0,0]]")
  }

  /// The revisions of feeds that no longer show managed rows are the same after replay, which does not know these rows, so
  /// that conditions that held hold again. A watch does not resume from the time of the managed rows.
  @Test func feedsThatNoLongerShowManagedRowsKeepTheirRevisions() throws {
    let set = try ConfiguredDaemon(Self.configuration, contacts: Self.contacts, isKept: true)
    let first = try set.watch("people")
    _ = try first.receive(having: "Best mate")
    let (slots, end) = (#""kind":"slots","pattern":["A"],"repeatables":["A"],"contents":{"A":"#, #"},"replace":true}"#)
    // Feeds of each kind, how they are taken the managed rows from, and feeds above them.
    for definition in [
      #"{"feed":"view","kind":"view","of":"people"}"#, #"{"feed":"slots",\#(slots)"people"}}"#,
      #"{"feed":"tabs","kind":"segmented","children":["notes","people"]}"#,
      #"{"feed":"above","kind":"composed","children":["view","slots"]}"#,
    ] { try expect(set.ask("define", definition)["result"]["revision"].int != nil) }
    let seen = try set.ask("watch", #"{"feed":"view"}"#)["result"]
    try expectEqual(set.ask("select", #"{"feed":"library","at":[2,0]}"#)["error"]["code"].int, -32005)
    _ = try set.ask("insert", #"{"feed":"notes","elements":[1]}"#)
    try expectEqual(set.ask("select", #"{"feed":"library","at":[2,0]}"#)["result"]["selected"].elements.count, 1)
    for (method, params) in [
      ("define", #"{"feed":"view","kind":"view","of":"notes","replace":true}"#),
      ("define", #"{"feed":"slots",\#(slots)"notes"\#(end)"#),
      ("removeChild", #"{"feed":"tabs","child":"people"}"#), ("removeChild", #"{"feed":"library","child":"people"}"#),
    ] { try expect(set.ask(method, params)["result"]["revision"].int != nil) }
    let feeds = ["view", "slots", "tabs", "above", "library"]
    func revisions() throws -> [Int?] {
      try feeds.map { try set.ask("describe", #"{"feed":"\#($0)"}"#)["result"]["revision"].int }
    }
    let known = try revisions()
    expect(known.allSatisfy { $0 ?? 0 > 0 })
    for (feed, revision) in zip(feeds, known) {
      let condition = #"{"feed":"\#(feed)","revision":\#(revision ?? -1)}"#
      let define = try set.ask("define", #"{"feed":"if-\#(feed)","kind":"array","if":\#(condition)}"#)
      expectEqual(define["error"]["code"].int, nil, "\(feed)")
    }
    try expectEqual(set.ask("selected", #"{"feed":"library"}"#)["result"]["selected"].elements.count, 0)
    try set.restart(signal: SIGKILL)
    try expectEqual(revisions(), known)
    let names = try set.ask("feeds", "{}")["result"]["feeds"].elements.compactMap { $0["feed"].string }
    expectEqual(names.filter { $0.hasPrefix("if-") }, feeds.map { "if-\($0)" }.sorted())
    try expectEqual(set.ask("selected", #"{"feed":"library"}"#)["result"]["selected"].elements.count, 0)
    let since = #""since":{"revision":\#(seen["revision"].int ?? -1),"epoch":"\#(seen["epoch"].string ?? "")"}"#
    try expectEqual(set.ask("watch", #"{"feed":"view",\#(since)}"#)["result"]["resumed"].bool, false)
  }

  @Test func databaseIsReadWhenItIsCreated() throws {
    let set = try ConfiguredDaemon(Self.configuration)
    try set.daemon.process.errors.wait(for: "managed feed people: there is no file \(set.database)")
    let missing = try set.ask("describe", #"{"feed":"people"}"#)["result"]["source"]
    expect(missing["status"].string == "error" && missing["error"].string?.hasPrefix("there is no file") == true)
    let client = try set.watch("people")
    try set.open().execute(Self.contacts)
    _ = try client.receive(having: "people/family", "Dad")
    let found = try set.ask("describe", #"{"feed":"people"}"#)["result"]["source"]
    expect(found["status"].string == "ok" && found["since"].string?.hasPrefix("20") == true)
  }

  @Test func databaseIsReadWhenItsDirectoryIsCreated() throws {
    let set = try ConfiguredDaemon(Self.configuration.replacing("contacts.sqlite", with: "a/b/contacts.sqlite"))
    try set.daemon.process.errors.wait(for: "managed feed people: there is no file")
    let client = try set.watch("people")
    for path in ["a", "a/b"] { expectEqual(mkdir(set.directory.file(path), 0o755), 0) }
    // The daemon may be reading the new file.
    let database = try Database(path: set.directory.file("a/b/contacts.sqlite"), access: .create, busyTimeout: 5000)
    try database.execute(Self.contacts)
    _ = try client.receive(having: "people/family", "Dad")
  }

  @Test func lockedOrDamagedDatabaseKeepsTheRows() throws {
    let set = try ConfiguredDaemon(Self.configuration, contacts: Self.contacts)
    let client = try set.watch("people")
    _ = try client.receive(having: "people/friends")
    let log = set.daemon.process.errors

    let other = try set.open()
    try other.execute("BEGIN EXCLUSIVE; UPDATE person SET name = 'Pa' WHERE id = 1")
    // The changed modification time makes the daemon read the database.
    expectEqual(utimes(set.database, nil), 0)
    try log.wait(for: "managed feed people: another program has locked \(set.database)")
    let locked = try set.ask("describe", #"{"feed":"people"}"#)["result"]["source"]["error"].string
    expectEqual(locked?.contains("another program has locked"), true)
    try expectEqual(set.ask("get", #"{"feed":"people","id":1}"#)["result"]["element"]["name"].string, "Dad")
    try other.execute("COMMIT")
    _ = try client.receive(having: #""updated":"#, #""name":"Pa""#)

    let good = try SmallFile.read(set.database)
    try SmallFile.replace(set.database, with: Array("this is no database whatever it is called".utf8))
    try log.wait(for: "is not an SQLite database")
    try expectEqual(set.ask("describe", #"{"feed":"people"}"#)["result"]["count"].int, 3)
    try SmallFile.replace(set.database, with: good)
    // The restored rows are equal, so the watcher receives nothing until another database replaces them.
    let second = try Database(path: set.directory.file("second"), access: .create)
    try second.execute(Self.contacts.replacing("'Dad'", with: "'Daddy'"))
    expectEqual(rename(set.directory.file("second"), set.database), 0)
    _ = try client.receive(having: #""updated":"#, #""name":"Daddy""#)
    try expectEqual(set.ask("describe", #"{"feed":"people"}"#)["result"]["source"]["status"].string, "ok")
  }

  @Test func invalidRowsAreReported() throws {
    let set = try ConfiguredDaemon(Self.configuration, contacts: Self.contacts.replacing("PRIMARY KEY", with: ""))
    let client = try set.watch("people")
    _ = try client.receive(having: "people/friends")
    let other = try set.open()
    try other.execute("INSERT INTO person VALUES (1, 'Again', 'family')")
    try set.daemon.process.errors.wait(for: "has the value of an earlier row")
    try expectEqual(set.ask("describe", #"{"feed":"people"}"#)["result"]["source"]["status"].string, "error")
    try other.execute("DELETE FROM person WHERE name = 'Dad'")
    _ = try client.receive(having: "Again")
  }

  /// Rows that leave no room for views above are refused until there is room.
  @Test func refusedRowsAreReadAgain() throws {
    let set = try ConfiguredDaemon(
      Self.configuration, contacts: Self.contacts, arguments: ["--max-total-view-rows", "3"])
    let client = try set.watch("people")
    _ = try client.receive(having: "people/friends")
    let view = #"{"feed":"sorted","kind":"view","of":"people","sort":[{"by":"$.name"}]}"#
    try expect(set.ask("define", view)["result"]["revision"].int != nil)
    try set.open().execute("INSERT INTO person VALUES (4, 'Kim', 'work')")
    try set.daemon.process.errors.wait(
      for: "managed feed people: limit maxTotalViewRows (3) exceeded: all views keep 3 rows")
    try expectEqual(set.ask("describe", #"{"feed":"people"}"#)["result"]["count"].int, 3)
    try expect(set.ask("undefine", #"{"feed":"sorted"}"#)["result"]["revision"].int != nil)
    // The changed modification time makes the daemon look at the database, as it does every ten seconds.
    expectEqual(utimes(set.database, nil), 0)
    _ = try client.receive(having: "people/work", "Kim")
    try expectEqual(set.ask("describe", #"{"feed":"people"}"#)["result"]["source"]["status"].string, "ok")
  }
}
