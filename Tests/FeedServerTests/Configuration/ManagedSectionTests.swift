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

  /// Family and friends, as in the seed's example; a watcher sees what another program commits, row by row.
  @Test(arguments: ["DELETE", "WAL"]) func contactsInTwoGroups(mode: String) throws {
    let set = try ConfiguredDaemon(
      Self.configuration, contacts: "PRAGMA journal_mode = \(mode);" + Self.contacts)
    let client = try set.watch("library")
    _ = try client.receive(having: "people/family", "people/friends")
    let other = try set.open()
    try other.execute("UPDATE person SET name = 'Mother' WHERE id = 2")
    _ = try client.receive(having: #""updated":[[0,1]]"#, #"{"id":2,"name":"Mother","circle":"family"}"#)
    try other.execute("UPDATE person SET name = 'Aaron' WHERE id = 2")
    _ = try client.receive(having: #""deleted":[[0,1]],"added":[[0,0]]"#, #""moves":[[0,0]]"#)
    try other.execute("BEGIN; DELETE FROM person WHERE id = 3; INSERT INTO person VALUES (4, 'Kim', 'work'); COMMIT")
    _ = try client.receive(having: #""sections":{"deleted":[1],"added":[{"at":1,"name":"people/work"}]}"#, "Kim")
    let snapshot = try set.ask("snapshot", #"{"feed":"library"}"#)
    #expect(snapshot.contains(#""name":"people/family","count":2"#) && snapshot.contains(#""name":"notes","count":0"#))
    #expect(try set.daemon.stop() == 0)
  }

  /// What the state has of a managed feed is its definition: the rows are read again.
  @Test(arguments: [SIGTERM, SIGKILL]) func rowsAreReadAgainAfterARestart(signal: Int32) throws {
    let set = try ConfiguredDaemon(Self.configuration, contacts: Self.contacts, isKept: true)
    for _ in 0..<3 {
      let client = try set.watch("library")
      _ = try client.receive(having: "Best mate")
      try set.restart(signal: signal)
    }
  }

  @Test func aMissingDatabaseIsReadWhenItAppears() throws {
    let set = try ConfiguredDaemon(Self.configuration)
    try set.daemon.process.errors.wait(for: "managed feed people: there is no file \(set.database)")
    #expect(
      try set.ask("describe", #"{"feed":"people"}"#).contains(#""source":{"status":"error","error":"there is no file"#))
    let client = try set.watch("people")
    try set.open().execute(Self.contacts)
    _ = try client.receive(having: "people/family", "Dad")
    #expect(try set.ask("describe", #"{"feed":"people"}"#).contains(#""source":{"status":"ok","since":"20"#))
  }

  @Test func aMissingDirectoryIsWaitedFor() throws {
    let set = try ConfiguredDaemon(
      Self.configuration.replacing("contacts.sqlite", with: "a/b/contacts.sqlite"))
    try set.daemon.process.errors.wait(for: "managed feed people: there is no file")
    let client = try set.watch("people")
    for path in ["a", "a/b"] { #expect(mkdir(set.directory.file(path), 0o755) == 0) }
    try Database(path: set.directory.file("a/b/contacts.sqlite"), access: .create).execute(Self.contacts)
    _ = try client.receive(having: "people/family", "Dad")
  }

  @Test func lockedReplacedAndDamagedKeepTheRowsAndRecover() throws {
    let set = try ConfiguredDaemon(Self.configuration, contacts: Self.contacts)
    let client = try set.watch("people")
    _ = try client.receive(having: "people/friends")
    let log = set.daemon.process.errors

    let other = try set.open()
    try other.execute("BEGIN EXCLUSIVE; UPDATE person SET name = 'Pa' WHERE id = 1")
    // A change of the file's time tells the daemon to look.
    #expect(utimes(set.database, nil) == 0)
    try log.wait(for: "managed feed people: another program has locked \(set.database)")
    #expect(try set.ask("describe", #"{"feed":"people"}"#).contains("another program has locked"))
    #expect(try set.ask("get", #"{"feed":"people","id":1}"#).contains(#""name":"Dad""#))
    try other.execute("COMMIT")
    _ = try client.receive(having: #""updated":"#, #""name":"Pa""#)

    let good = try SmallFile.read(set.database)
    try SmallFile.replace(set.database, with: Array("this is no database whatever it is called".utf8))
    try log.wait(for: "is not an SQLite database")
    #expect(try set.ask("describe", #"{"feed":"people"}"#).contains(#""count":3"#))
    try SmallFile.replace(set.database, with: good)
    // The rows are the same, so the watcher is told nothing; describe says that all is well again.
    let second = try Database(path: set.directory.file("second"), access: .create)
    try second.execute(Self.contacts.replacing("'Dad'", with: "'Daddy'"))
    #expect(rename(set.directory.file("second"), set.database) == 0)
    _ = try client.receive(having: #""updated":"#, #""name":"Daddy""#)
    #expect(try set.ask("describe", #"{"feed":"people"}"#).contains(#""status":"ok""#))
  }

  @Test func rowsThatCannotBeTakenAreReported() throws {
    let set = try ConfiguredDaemon(Self.configuration, contacts: Self.contacts.replacing("PRIMARY KEY", with: ""))
    let client = try set.watch("people")
    _ = try client.receive(having: "people/friends")
    let other = try set.open()
    try other.execute("INSERT INTO person VALUES (1, 'Again', 'family')")
    try set.daemon.process.errors.wait(for: "has the value of an earlier row")
    #expect(try set.ask("describe", #"{"feed":"people"}"#).contains(#""status":"error""#))
    try other.execute("DELETE FROM person WHERE name = 'Dad'")
    _ = try client.receive(having: "Again")
  }
}
