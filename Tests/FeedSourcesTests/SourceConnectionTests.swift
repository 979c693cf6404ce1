import FeedSQLite
import FeedSystem
import Glibc
import TestSupport
import Testing

@testable import FeedModel
@testable import FeedSources

@Suite("Reading a database")
struct SourceConnectionTests {
  private let directory: TemporaryDirectory
  /// The database that most tests read.
  private var path: String { directory.file("d") }

  init() throws { directory = try TemporaryDirectory() }

  private func specification(_ path: String, _ query: String, section: String? = nil) -> SourceSpecification {
    SourceSpecification(
      name: "f", database: path, query: query, id: "id", section: section, maxRows: 5, maxRowBytes: 100, maxBytes: 300)
  }

  /// Describes the rows that were read, or the failure.
  private func text(_ outcome: SourceReport.Outcome) -> String {
    switch outcome {
    case .unchanged: "unchanged"
    case .failed(let reason): reason
    case .rows(let rows):
      rows.entries.map { entry in
        "\(rows.sections[entry.section]):\(String(decoding: rows.bytes[entry.start..<entry.end], as: UTF8.self))"
      }.joined(separator: "\n")
    }
  }

  private func database(_ sql: String, at path: String? = nil) throws -> Database {
    let database = try Database(path: path ?? self.path, access: .create)
    try database.execute(sql)
    return database
  }

  @Test func valuesAreConvertedToJSONExactly() throws {
    _ = try database("CREATE TABLE t (id)")
    var connection = SourceConnection()
    for (sql, json) in [
      ("9223372036854775807", "9223372036854775807"), ("-5", "-5"), ("0.1", "0.1"), ("1e300", "1e+300"),
      ("9e999", "null"), ("NULL", "null"), ("'a\"\u{7}é'", #""a\"\u0007é""#), ("x''", #""""#),
      ("x'00ff10'", #""AP8Q""#),
      ("x'6162'", #""YWI=""#), ("x'61'", #""YQ==""#), ("''", #""""#),
    ] {
      let outcome = connection.look(specification(path, "SELECT 1 AS id, \(sql) AS v"))
      expectEqual(text(outcome), #":{"id":1,"v":\#(json)}"#)
    }
    let section = connection.look(
      specification(
        path, "SELECT column1 id, column2 s FROM (VALUES (1, 'x'), (2, NULL), (3, 7), (4, 'x'))",
        section: "s"))
    expectEqual(text(section).split(separator: "\n").map { $0.prefix { $0 != ":" } }, ["x", "", "7", "x"])
  }

  @Test(
    arguments: [
      ("DELETE FROM t", "it begins with \"DELETE\""), ("ATTACH 'x' AS y", "it begins with \"ATTACH\""),
      ("", "it begins with"),
      ("WITH a AS (SELECT 1) DELETE FROM t", "changes nothing"),
      ("SELECT 1 AS id; DELETE FROM t", "more than one statement"),
      ("SELECT 1 AS x", "no column \"id\"; it has x"), ("SELECT 1 AS id, 2 AS id", "two columns named \"id\""),
      ("SELECT id FROM nowhere", "no such table: nowhere"),
      ("SELECT 1 AS id WHERE 1 = ?", "has a parameter"), ("SELECT :id AS id", "has a parameter"),
      ("SELECT value AS id FROM json_each('[1,2,3,4,5,6]')", "maxElements"),
      ("SELECT 1 AS id, printf('%0200d', 1) AS v", "maxElementBytes"),
      ("SELECT value AS id, printf('%080d', 1) AS v FROM json_each('[1,2,3,4,5]')", "maxBytes"),
      ("/* c */ -- d\n (SELECT 1)", "it begins with"),
    ])
  func invalidQueriesAreRefused(query: String, words: String) throws {
    let other = try database("CREATE TABLE t (id); INSERT INTO t VALUES (1)")
    var connection = SourceConnection()
    let outcome = text(connection.look(specification(path, query)))
    expect(outcome.contains(words), "\(outcome)")
    try expectEqual(other.integer("SELECT count(*) FROM t"), 1)
  }

  @Test func trailingSemicolonAndCommentsAreAllowed() throws {
    _ = try database("CREATE TABLE t (id)")
    var connection = SourceConnection()
    let query = "-- rows\n/* of */ select 1 as id; -- all\n ;"
    expectEqual(text(connection.look(specification(path, query))), #":{"id":1}"#)
  }

  @Test(arguments: ["DELETE", "WAL"]) func rowsAreReadAgainOnlyAfterACommit(mode: String) throws {
    let other = try database("PRAGMA journal_mode = \(mode); CREATE TABLE t (id)")
    var connection = SourceConnection()
    let all = specification(path, "SELECT * FROM t")
    expectEqual(text(connection.look(all)), "")
    expectEqual(text(connection.look(all)), "unchanged")
    try other.execute("INSERT INTO t VALUES (1)")
    expectEqual(text(connection.look(all)), #":{"id":1}"#)
    expectEqual(text(connection.look(all)), "unchanged")
    expectEqual(text(connection.look(all, again: true)), #":{"id":1}"#)
    expectEqual(text(connection.look(all)), "unchanged")
    // An altered table shows its new columns at once.
    try other.execute("ALTER TABLE t ADD COLUMN v DEFAULT 2")
    expectEqual(text(connection.look(all)), #":{"id":1,"v":2}"#)
  }

  @Test func unreadableFilesAreReported() throws {
    let all = specification(path, "SELECT id FROM t")
    var connection = SourceConnection()
    expect(text(connection.look(all)).contains("there is no file \(path)"))
    let other = try database("CREATE TABLE t (id); INSERT INTO t VALUES (1)")
    expectEqual(text(connection.look(all)), #":{"id":1}"#)
    try other.execute("BEGIN EXCLUSIVE")
    expect(text(connection.look(all)).contains("another program has locked"))
    try other.execute("COMMIT")
    expectEqual(text(connection.look(all)), #":{"id":1}"#)

    let second = try Database(path: directory.file("e"), access: .create)
    try second.execute("CREATE TABLE t (id); INSERT INTO t VALUES (2)")
    expectEqual(rename(directory.file("e"), path), 0)
    expectEqual(text(connection.look(all)), #":{"id":2}"#)

    let good = try SmallFile.read(path)
    try SmallFile.replace(path, with: Array("no database at all, but long enough to look".utf8))
    expect(text(connection.look(all)).contains("is not an SQLite database"))
    var damaged = good
    for index in 4096..<damaged.count { damaged[index] = 0xFF }
    try SmallFile.replace(path, with: damaged)
    expect(text(connection.look(all)).contains("is damaged"))
    try SmallFile.replace(path, with: good)
    expectEqual(text(connection.look(all)), #":{"id":2}"#)
  }

  private static let endless =
    "WITH RECURSIVE n (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) SELECT count(*) AS id FROM n"

  @Test func endlessQueryIsInterrupted() throws {
    _ = try database("CREATE TABLE t (id)")
    var connection = SourceConnection(timeLimit: .milliseconds(10))
    expectEqual(
      text(connection.look(specification(path, Self.endless))),
      "the query on \(path) takes too long; add an index or a LIMIT")
    expectEqual(text(connection.look(specification(path, "SELECT 1 AS id"))), #":{"id":1}"#)
  }

  @Test func queryEndsWhenItIsNoLongerWanted() throws {
    _ = try database("CREATE TABLE t (id)")
    var connection = SourceConnection(timeLimit: .seconds(3600))
    var looks = 0
    let outcome = connection.look(specification(path, Self.endless)) {
      looks += 1
      return looks == 3
    }
    guard case .failed = outcome else { return expect(Bool(false), "the query ended") }
    expectEqual(looks, 3)
  }

  @Test("a value with more than 1024 bytes of JSON text names no section, as in collections")
  func sectionsOfLongValues() throws {
    _ = try database("CREATE TABLE t (id)")
    var connection = SourceConnection()
    func section(_ sql: String) -> String {
      let outcome = connection.look(
        SourceSpecification(
          name: "f", database: path, query: "SELECT 1 AS id, \(sql) AS v", id: "id", section: "v",
          maxRows: 5, maxRowBytes: 10_000, maxBytes: 10_000))
      guard case .rows(let rows) = outcome else { return text(outcome) }
      return rows.sections.joined(separator: "|")
    }
    let long = String(repeating: "0", count: 1021)
    expectEqual(section("printf('x%01021d', 0)"), "x" + long)
    expectEqual(section("printf('x%01022d', 0)"), "")
    // Two bytes of JSON for a quotation mark.
    expectEqual(section("printf('x%01021d\"', 0)"), "")
    expectEqual(section("printf('x%01019d\"', 0)"), "x" + String(repeating: "0", count: 1019) + "\"")
    expectEqual(section("zeroblob(765)"), String(repeating: "A", count: 1020))
    expectEqual(section("zeroblob(768)"), "")
  }

  @Test("texts that are only canonically equivalent are different paths, queries and columns")
  func canonicallyEquivalentTexts() throws {
    let (one, two) = ("\u{e9}", "e\u{301}")
    for (number, name) in [one, two].enumerated() {
      let database = try Database(path: directory.file(name), access: .create)
      try database.execute("CREATE TABLE t (id); INSERT INTO t VALUES (\(number))")
    }
    var connection = SourceConnection()
    let query = "SELECT id FROM t"
    expect(specification(directory.file(one), query) != specification(directory.file(two), query))
    expect(specification("d", "SELECT '\(one)' AS id") != specification("d", "SELECT '\(two)' AS id"))
    expectEqual(text(connection.look(specification(directory.file(one), query))), #":{"id":0}"#)
    expectEqual(text(connection.look(specification(directory.file(two), query))), #":{"id":1}"#)
    let columns = "SELECT 1 AS id, 2 AS \(one), 3 AS \(two)"
    expectEqual(
      text(connection.look(specification(directory.file(one), columns, section: two))),
      #"3:{"id":1,"\#(one)":2,"\#(two)":3}"#)
  }

  @Test("a row is in the section of the value that its element shows")
  func sectionsOfUnusualValues() throws {
    _ = try database("CREATE TABLE t (id)")
    var connection = SourceConnection()
    for (sql, json, section) in [
      ("9e999", "null", ""), ("-9e999", "null", ""), ("9e999 - 9e999", "null", ""), ("NULL", "null", ""),
      ("''", #""""#, ""),
      ("x''", #""""#, ""), ("'null'", #""null""#, "null"), ("'Inf'", #""Inf""#, "Inf"), ("-0.0", "-0.0", "0"),
      ("1e300", "1e+300", "1e300"), ("4.9e-324", "5e-324", "5e-324"), ("x'00ff10'", #""AP8Q""#, "AP8Q"),
      ("CAST(x'61ff62' AS TEXT)", "\"a\u{FFFD}b\"", "a\u{FFFD}b"),
      ("CAST(x'eda080' AS TEXT)", "\"\u{FFFD}\u{FFFD}\u{FFFD}\"", "\u{FFFD}\u{FFFD}\u{FFFD}"),
      ("CAST(x'610062' AS TEXT)", #""a\u0000b""#, "a\u{0}b"),
    ] {
      let query = "SELECT 1 AS id, \(sql) AS v"
      expectEqual(
        text(connection.look(specification(path, query, section: "v"))),
        "\(section):{\"id\":1,\"v\":\(json)}",
        "\(sql)")
    }
  }

  @Test("a database in WAL mode in a directory that cannot be written is read again after it was written")
  func walInUnwritableDirectory() throws {
    try database("PRAGMA journal_mode = WAL; CREATE TABLE t (id); INSERT INTO t VALUES (1)").execute(
      "PRAGMA wal_checkpoint(TRUNCATE)")
    let all = specification(path, "SELECT id FROM t")
    /// Runs `body` as another user, which can read the directory but not write to it.
    func asReader<Result>(_ body: () -> Result) throws -> Result {
      expect(chmod(directory.path, 0o755) == 0 && chmod(path, 0o644) == 0)
      guard getuid() == 0 else {
        expectEqual(chmod(directory.path, 0o555), 0)
        defer { chmod(directory.path, 0o755) }
        return body()
      }
      expect(ThreadUser.set(65534))
      defer { expect(ThreadUser.set(0)) }
      return body()
    }
    var connection = SourceConnection()
    try expectEqual(asReader { text(connection.look(all)) }, #":{"id":1}"#)
    for number in 2...4 {
      // The writer leaves no log behind, and the file is of the same size.
      do { _ = try database("INSERT INTO t VALUES (\(number))") }
      let rows = (1...number).map { ":{\"id\":\($0)}" }.joined(separator: "\n")
      try expectEqual(asReader { text(connection.look(all)) }, rows)
    }
    // An old file is not read again.
    var times = [timeval(tv_sec: 1_000_000_000, tv_usec: 0), timeval(tv_sec: 1_000_000_000, tv_usec: 0)]
    expectEqual(utimes(path, &times), 0)
    try expect(asReader { text(connection.look(all)) }.hasSuffix(#":{"id":4}"#))
    try expectEqual(asReader { text(connection.look(all)) }, "unchanged")
    // With a log, which the reader cannot index, the rows of the file alone would be old. The log is that of a killed writer.
    do {
      let writer = try database("INSERT INTO t VALUES (5)")
      let log = try SmallFile.read(path + "-wal")
      try withExtendedLifetime(writer) { try SmallFile.replace(directory.file("log"), with: log) }
    }
    try Database(path: path, access: .readWrite).execute("DELETE FROM t WHERE id = 5; PRAGMA wal_checkpoint(TRUNCATE)")
    expectEqual(rename(directory.file("log"), path + "-wal"), 0)
    try expect(asReader { text(connection.look(all)) }.hasPrefix("cannot open \(path) ("))
    unlink(path + "-wal")
    try expect(asReader { text(connection.look(all)) }.hasSuffix(#":{"id":4}"#))
  }

  @Test("rows of a transaction that its writer left unfinished are not read")
  func hotJournal() throws {
    let writer = try database(
      """
      CREATE TABLE t (id, v);
      WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 2000)
      INSERT INTO t SELECT n, 'old' || printf('%0200d', n) FROM n
      """)
    let counts = specification(path, "SELECT 1 AS id, sum(v LIKE 'old%') AS old FROM t")
    var connection = SourceConnection()
    expectEqual(text(connection.look(counts)), #":{"id":1,"old":2000}"#)
    // With few pages of memory, changed pages go to the file before the end of the transaction.
    try writer.execute("PRAGMA cache_size = 5; BEGIN; UPDATE t SET v = 'new' || substr(v, 4)")
    let (file, journal) = (try SmallFile.read(path), try SmallFile.read(path + "-journal"))
    try writer.execute("ROLLBACK")
    try SmallFile.replace(path + "-journal", with: journal)
    try SmallFile.replace(path, with: file)
    for _ in 0..<2 {
      expectEqual(
        text(connection.look(counts)),
        "\(path) was left in the middle of a transaction; open it once with the program that writes it")
    }
    #expect(throws: SQLiteError.self) { try connection.check(counts) }
    expectEqual(try Database(path: path, access: .readWrite).integer("SELECT count(*) FROM t"), 2000)
    expectEqual(text(connection.look(counts)), #":{"id":1,"old":2000}"#)
  }

  @Test("a file that was overwritten in place without SQLite is read again", arguments: ["DELETE", "WAL"])
  func fileOverwrittenInPlace(mode: String) throws {
    let other = directory.file("other")
    // The same statements lead to the same counters in the file.
    for (path, value) in [(path, 1), (other, 2)] {
      let sql = "PRAGMA journal_mode = \(mode); CREATE TABLE t (id); INSERT INTO t VALUES (\(value))"
      _ = try database(sql, at: path)
    }
    var times = [timeval(tv_sec: 1_000_000_000, tv_usec: 0), timeval(tv_sec: 1_000_000_000, tv_usec: 0)]
    expectEqual(utimes(path, &times), 0)
    let all = specification(path, "SELECT id FROM t")
    var connection = SourceConnection()
    expectEqual(text(connection.look(all)), #":{"id":1}"#)
    let bytes = try SmallFile.read(other)
    let number = open(path, O_WRONLY)
    expectEqual(bytes.withUnsafeBytes { write(number, $0.baseAddress, $0.count) }, bytes.count)
    close(number)
    expectEqual(text(connection.look(all)), #":{"id":2}"#)
    expectEqual(text(connection.look(all)), "unchanged")
  }

  @Test func longValuesAndRowsAreRefusedBeforeTheyUseMemory() throws {
    _ = try database("CREATE TABLE t (id)")
    var connection = SourceConnection()
    func look(_ query: String) -> String { text(connection.look(specification(path, query))) }
    expect(look("SELECT 1 AS id, zeroblob(2000000000) AS v").contains("reads a value that is too long"))
    expectEqual(
      look("SELECT 1 AS id, zeroblob(200) AS v"), "row 0 of the query has more than 100 bytes (maxElementBytes)")
    // {"id":1,"v":"…"} has 15 bytes besides the text.
    expectEqual(look("SELECT 1 AS id, substr(hex(zeroblob(50)), 1, 85) AS v").utf8.count, 101)
    expect(look("SELECT 1 AS id, substr(hex(zeroblob(50)), 1, 86) AS v").contains("more than 100 bytes"))
    expect(look("SELECT column1 AS id FROM (VALUES (1), (2), (3), (4), (5), (6))").contains("returns more than 5 rows"))
  }

  @Test("only regular files are opened, also beside the database", arguments: ["", "-wal", "-shm", "-journal"])
  func specialFile(suffix: String) throws {
    _ = try database("CREATE TABLE t (id); INSERT INTO t VALUES (1)")
    let file = path + suffix
    unlink(file)
    expectEqual(mkfifo(file, 0o600), 0)
    // With both ends open, opening the FIFO does not block a reader that tries.
    let ends = open(file, O_RDWR)
    defer { close(ends) }
    var connection = SourceConnection()
    expectEqual(
      text(connection.look(specification(path, "SELECT id FROM t"))),
      "\(file) is not a regular file; name a database file")
  }

  private func tooLarge(_ path: String) -> String {
    "the schema of \(path) is too large; remove tables and views, or name a database with fewer of them"
  }

  @Test("a schema with a long statement, with many tables or with much to parse is refused")
  func largeSchema() throws {
    let (many, wide) = (directory.file("many"), directory.file("wide"))
    let comment = String(repeating: "x", count: 2 << 20)
    _ = try database("CREATE TABLE t (id /* \(comment) */)")
    _ = try database(
      """
      CREATE TABLE t (id); PRAGMA writable_schema = ON; INSERT INTO sqlite_schema
      WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 30000)
      SELECT 'view', 'v' || n, 'v' || n, 0, 'CREATE VIEW v' || n || ' AS SELECT 1' FROM n
      """, at: many)
    let condition = "id IN (" + Array(repeating: "1", count: 400_000).joined(separator: ",") + ")"
    let statements = (0..<3).map { "CREATE VIEW v\($0) AS SELECT \(condition) FROM t" }
    _ = try database(statements.joined(separator: ";") + ";CREATE TABLE t (id)", at: wide)
    for path in [path, many, wide] {
      var connection = SourceConnection()
      expectEqual(text(connection.look(specification(path, "SELECT id FROM t"))), tooLarge(path))
      expectEqual(text(connection.look(specification(path, "SELECT 1 AS id"))), tooLarge(path))
    }
  }

  /// A view that names the one below twice, at each of `levels`, so that the query names `2 ** levels` tables.
  private func nestedViews(_ levels: Int, _ body: (String) -> String) -> String {
    let views = (1...levels).map { "CREATE VIEW v\($0) AS \(body("v\($0 - 1)"))" }
    return (["CREATE TABLE t (id)", "CREATE VIEW v0 AS SELECT id FROM t"] + views).joined(separator: ";")
  }

  @Test(
    "views that double at each level are refused before they are compiled",
    arguments: [
      "SELECT a.id FROM $ a, $ b", "SELECT id FROM $ UNION ALL SELECT id FROM $",
      "SELECT (SELECT id FROM $) + (SELECT id FROM $) AS id", "WITH a AS (SELECT id FROM $) SELECT a.id FROM a, a AS b",
      "SELECT id + id AS id FROM $",
    ])
  func nestedViews(body: String) throws {
    _ = try database(nestedViews(30) { body.replacing("$", with: $0) })
    var connection = SourceConnection()
    expectEqual(
      text(connection.look(specification(path, "SELECT id FROM v30"))),
      "the query on \(path), with the views that it names, takes too much memory; simplify it")
    expectEqual(text(connection.look(specification(path, "SELECT id FROM v3 WHERE id IS NOT NULL"))), "")
  }

  @Test("a query holds at most 64 MiB and 16 long values")
  func memoryOfTheExecution() throws {
    _ = try database("CREATE TABLE t (id)")
    // Each maximum holds a value of almost a mebibyte, the length limit.
    func query(holding count: Int) -> String {
      let lengths = (1...count).map { "length(max(randomblob(1000000 + \($0))))" }
      return "SELECT \(lengths.joined(separator: " + ")) > 0 AS id"
    }
    var connection = SourceConnection()
    expectEqual(text(connection.look(specification(path, query(holding: 60)))), #":{"id":1}"#)
    expectEqual(
      text(connection.look(specification(path, query(holding: 100)))),
      "the query on \(path), with the views that it names, takes too much memory; simplify it")
    expectEqual(text(connection.look(specification(path, query(holding: 60)))), #":{"id":1}"#)
  }

  @Test("a schema that grows while the connection is open is refused")
  func growingSchema() throws {
    let writer = try database("CREATE TABLE t (id); INSERT INTO t VALUES (1)")
    var connection = SourceConnection()
    let all = specification(path, "SELECT id FROM t")
    expectEqual(text(connection.look(all)), #":{"id":1}"#)
    try writer.execute("CREATE TABLE u (id /* \(String(repeating: "x", count: 2 << 20)) */)")
    expectEqual(text(connection.look(all)), tooLarge(path))
    try writer.execute("DROP TABLE u")
    expectEqual(text(connection.look(all)), #":{"id":1}"#)
  }

  @Test("a view may read tables, but calls no functions with side effects")
  func untrustedView() throws {
    _ = try database(
      """
      CREATE TABLE t (id); INSERT INTO t VALUES (1); CREATE VIEW v AS SELECT id FROM t;
      CREATE VIEW w AS SELECT load_extension('x') AS id
      """)
    var connection = SourceConnection()
    expectEqual(text(connection.look(specification(path, "SELECT id FROM v"))), #":{"id":1}"#)
    expectEqual(
      text(connection.look(specification(path, "SELECT id FROM w"))), "\(path): unsafe use of load_extension()")
  }
}

/// The user of this thread alone, for access to files.
enum ThreadUser {
  /// Sets the user. Returns whether that worked.
  static func set(_ uid: uid_t) -> Bool {
    // Not in the headers that Swift imports.
    guard let address = dlsym(nil, "setfsuid") else { return false }
    let setfsuid = unsafeBitCast(address, to: (@convention(c) (uid_t) -> Int32).self)
    _ = setfsuid(uid)
    return setfsuid(uid) == Int32(uid)
  }
}
