import FeedSQLite
import TestSupport
import Testing

struct DatabaseTests {
  @Test func boundValuesAreReadBack() throws {
    let database = try Database(path: ":memory:", access: .create)
    try database.execute("CREATE TABLE t (a, b, c, d, e)")
    let insert = try database.prepare("INSERT INTO t VALUES (?, ?, ?, ?, ?)")
    let empty = UnsafeRawBufferPointer(start: nil, count: 0)
    try "lent".utf8.withContiguousStorageIfAvailable { bytes in
      try insert.run(
        UInt64.max, "žluťoučký", nil as String?, Lent.blob(empty), Lent.text(UnsafeRawBufferPointer(bytes)))
    }
    let read = try database.prepare("SELECT a, b, c, d AS last, e FROM t")
    try expect(read.step())
    expectEqual(read.unsigned(0), .max)
    expectEqual(read.text(1), "žluťoučký")
    expectEqual(read.type(of: 2), .null)
    expect(read.type(of: 3) == .blob && read.blobBytes(3).isEmpty)
    expect(read.name(of: 3) == "last" && read.columnCount == 5)
    expect(read.textBytes(4).elementsEqual("lent".utf8))
    try expect(!read.step())
  }

  @Test func errorNamesTheStatementAndTheCause() throws {
    let database = try Database(path: ":memory:", access: .create)
    do {
      _ = try database.prepare("SELECT x FROM nowhere")
      Issue.record("there is no such table")
    } catch {
      expectEqual(error.message, "no such table: nowhere")
      expectEqual(error.sql, "SELECT x FROM nowhere")
    }
    do {
      _ = try Database(path: "/nowhere/at/all", access: .readOnly)
      Issue.record("there is no such file")
    } catch {
      expectEqual(error.code, SQLiteError.cannotOpen)
    }
  }

  @Test func failedTransactionIsRolledBack() throws {
    let database = try Database(path: ":memory:", access: .create)
    try database.execute("CREATE TABLE t (a UNIQUE)")
    try database.execute("BEGIN IMMEDIATE; INSERT INTO t VALUES (1)")
    #expect(throws: SQLiteError.self) { try database.execute("INSERT INTO t VALUES (1)") }
    database.rollBack()
    expect(!database.isInTransaction)
    try expectEqual(database.integer("SELECT count(*) FROM t"), 0)
  }

  @Test(arguments: ["plain.db", "odd #1 ?a=b %41.db"]) func fileNamesCanContainAnyCharacter(_ name: String) throws {
    let directory = try TemporaryDirectory()
    let path = directory.file(name)
    do {
      let database = try Database(path: path, access: .create)
      try database.execute("PRAGMA journal_mode = WAL; CREATE TABLE t (a); INSERT INTO t VALUES (7)")
      try expect(database.emptyLog())
    }
    for access in [Database.Access.readOnly, .immutable, .readWrite] {
      let database = try Database(path: path, access: access)
      try expectEqual(database.integer("SELECT a FROM t"), 7)
    }
    #expect(throws: SQLiteError.self) {
      try Database(path: path, access: .readOnly).execute("INSERT INTO t VALUES (8)")
    }
  }
}
