import FeedSQLite
import FeedSystem
import Glibc
import TestSupport
import Testing

/// What `feedd --check-config` prints.
@Suite("Checking a configuration") struct CheckConfigTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  /// Runs the check in the directory with a relative path.
  private func check(_ text: String) throws -> (code: Int32, output: String, errors: String) {
    try SmallFile.replace(directory.file("c.json"), with: Array(text.utf8))
    let script = "cd \(directory.path) && exec \(try BuildProducts.program("feedd")) --check-config c.json"
    let process = try ChildProcess("/bin/sh", ["-c", script])
    let code = try process.waitForExit()
    try process.output.waitForEnd()
    try process.errors.waitForEnd()
    return (code, process.output.text, process.errors.text)
  }

  private static let free = "no access rules: every client may do everything"

  private func managed(_ query: String) -> String {
    "{\"feeds\": [\n {\"feed\": \"m\", \"kind\": \"managed\", \"database\": \"d\", \"query\": \"\(query)\"}]}"
  }

  /// The warning about the missing database in ``managed(_:)``.
  private var missing: String {
    "c.json:2:47: warning: feeds[0].database: there is no file \(directory.path)/d; it is read as soon as it appears\n"
  }

  @Test(
    "the syntax of a query is checked without its database",
    arguments: [
      ("SELEC 1", #"the query must be one SELECT; it begins with "SELEC""#),
      ("SELECT * FROM", "incomplete input"), ("SELECT id FROM t WHERE WHERE", #"near "WHERE": syntax error"#),
      ("SELECT 'x", #"unrecognized token: "'x""#), ("SELECT 1 AS x", #"the query has no column "id"; it has x"#),
      ("SELECT 1 AS id; SELECT 2", "the query is more than one statement; keep one SELECT"),
    ])
  func syntax(query: String, reason: String) throws {
    let result = try check(managed(query))
    expect(result.code == 1 && result.output.isEmpty)
    expectEqual(result.errors, "c.json:2:61: feeds[0].query: \(reason)\n" + missing)
  }

  @Test("a database that cannot be read is a warning", arguments: ["SELECT id FROM t", "SELECT id, x FROM t JOIN u"])
  func missingDatabase(query: String) throws {
    try expect(check(managed(query)) == (0, "c.json: ok: 1 feed, 0 limits, \(Self.free); 1 warning\n", missing))
  }

  @Test("a query is compiled against its database")
  func database() throws {
    let database = try Database(path: directory.file("d"), access: .create)
    try database.execute("CREATE TABLE t (id, a)")
    try expect(check(managed("SELECT id, a FROM t")) == (0, "c.json: ok: 1 feed, 0 limits, \(Self.free)\n", ""))
    for (query, reason) in [
      ("SELECT id FROM u", "no such table: u"), ("SELECT id, b FROM t", "no such column: b"),
      ("SELECT a FROM t", #"the query has no column "id"; it has a"#),
      ("SELECT id, id FROM t", #"the query has two columns named "id"; name one of them with AS"#),
      ("DELETE FROM t", #"the query must be one SELECT; it begins with "DELETE""#),
    ] {
      let result = try check(managed(query))
      expect(result == (1, "", "c.json:2:61: feeds[0].query: \(reason)\n"))
    }
    // Nothing was executed, and nothing is left beside the database.
    try database.execute("INSERT INTO t VALUES (1, 2)")
    try SmallFile.replace(directory.file("d"), with: Array("this is no database whatever it is called".utf8))
    let result = try check(managed("SELECT id FROM t"))
    expectEqual(result.code, 0)
    expectEqual(
      result.errors,
      "c.json:2:47: warning: feeds[0].database: \(directory.path)/d is not an SQLite database, or it is encrypted\n")
  }

  @Test("rules for feeds that the file does not define are remarked")
  func rules() throws {
    let result = try check(
      """
      {"feeds": [{"feed": "inbox", "bins": [{"name": "urgent"}]}, {"feed": "list", "kind": "array"}], "access": [
        {"allow": "read"}, {"feeds": "*", "allow": "read"}, {"feeds": ["inbox", "in*", "l?st", "inbox/urgent", "$feeds"], "allow": "read"},
        {"feeds": ["inbx", "list"], "allow": "read"},
        {"feeds": "inbox/all", "allow": "read"}]}
      """)
    expectEqual(result.code, 0)
    expectEqual(result.output, "c.json: ok: 2 feeds, 0 limits, 5 access rules; 2 warnings\n")
    let concerns = "matches no feed of this file; it concerns only feeds that clients define"
    expectEqual(
      result.errors,
      """
      c.json:3:14: warning: access[3].feeds[0]: "inbx" \(concerns); did you mean "inbox"?
      c.json:4:13: warning: access[4].feeds: "inbox/all" \(concerns)

      """)
  }

  @Test("a definition without a kind is a collection")
  func defaultKind() throws {
    try expect(check(#"{"feeds": [{"feed": "a"}]}"#) == (0, "c.json: ok: 1 feed, 0 limits, \(Self.free)\n", ""))
    try expectEqual(
      check(#"{"feeds": [{"feed": "a", "children": ["b"]}]}"#).errors,
      "c.json:1:26: feeds[0].children: unknown member; kind \"collection\" has no \"children\"; composed and segmented have it\n"
    )
    let set = try ConfiguredDaemon("\u{FEFF}" + #"{"feeds": [{"feed": "a", "bins": [{"name": "b"}]}]}"#)
    let feed = try set.ask("describe", #"{"feed":"a"}"#)["result"]
    expect(feed["kind"].string == "collection" && feed["sections"].elements[0]["name"].string == "a/b")
    try expectEqual(set.ask("define", #"{"feed":"c"}"#)["error"]["code"].int, -32602)
  }

  @Test("a byte order mark at the beginning is skipped, and counts for no column")
  func byteOrderMark() throws {
    try expect(check("\u{FEFF}{}") == (0, "c.json: ok: 0 feeds, 0 limits, \(Self.free)\n", ""))
    try expect(check("\u{FEFF}[]").errors.hasPrefix("c.json:1:1: must be an object"))
    try expect(check(" \u{FEFF}{}").errors.hasPrefix("c.json:1:2: not JSON: "))
    try expect(check("\u{FEFF}\u{FEFF}{}").errors.hasPrefix("c.json:1:1: not JSON: "))
  }

  @Test("errors name the path that was given")
  func paths() throws {
    try expectEqual(check("{").errors, "c.json:1:2: not JSON: the text ends inside a value\n")
    expectEqual(unlink(directory.file("c.json")), 0)
    let process = try ChildProcess(
      "/bin/sh", ["-c", "cd \(directory.path) && exec \(try BuildProducts.program("feedd")) --check-config ./no.json"])
    try expectEqual(process.waitForExit(), 1)
    try process.errors.waitForEnd()
    expectEqual(process.errors.text, "cannot open ./no.json: no such file or directory\n")
  }
}
