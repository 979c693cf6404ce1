import CSQLite

/// One compiled statement: bind its parameters, step through its rows, reset, again.
///
/// Belongs to the thread of its connection. Parameters count from 1, columns from 0, as in SQLite.
public final class Statement {
  let handle: OpaquePointer
  let database: Database

  init(_ sql: String, in database: Database, isKept: Bool) throws(SQLiteError) {
    var prepared: OpaquePointer?
    let flags = isKept ? UInt32(SQLITE_PREPARE_PERSISTENT) : 0
    let result = sqlite3_prepare_v3(database.handle, sql, -1, flags, &prepared, nil)
    guard result == SQLITE_OK else { throw SQLiteError(database.handle, result: result, sql: sql) }
    guard let prepared else {
      throw SQLiteError(code: SQLITE_MISUSE, extended: SQLITE_MISUSE, message: "there is no statement", sql: sql)
    }
    handle = prepared
    self.database = database
  }

  deinit {
    sqlite3_finalize(handle)
  }

  /// Goes on to the next row. Returns false when there is none.
  public func step() throws(SQLiteError) -> Bool {
    let result = sqlite3_step(handle)
    switch result {
    case SQLITE_ROW: return true
    case SQLITE_DONE: return false
    default: throw SQLiteError(database.handle, result: result, sql: sql)
    }
  }

  /// Executes a statement that gives no rows, and makes it ready to be used again.
  public func run() throws(SQLiteError) {
    defer { reset() }
    _ = try step()
  }

  /// Makes the statement ready to be stepped from the beginning; parameters keep their values.
  public func reset() {
    // The result repeats the error of the last step, which was thrown there.
    sqlite3_reset(handle)
  }

  /// Sets all parameters to NULL: bytes that were lent may go.
  public func clearParameters() {
    sqlite3_clear_bindings(handle)
  }

  /// The text it was compiled from.
  public var sql: String { sqlite3_sql(handle).map { String(cString: $0) } ?? "" }

  /// Whether it changes nothing in the database file.
  public var isReadOnly: Bool { sqlite3_stmt_readonly(handle) != 0 }
}
