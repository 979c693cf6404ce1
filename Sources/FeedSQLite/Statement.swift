import CSQLite
import Glibc

/// A compiled statement: bind its parameters, step through its rows, reset it, and use it again.
///
/// Used by the thread of its connection. Parameters count from 1, columns from 0, as in SQLite.
///
///     let insert = try database.prepare("INSERT INTO t VALUES (?, ?)")
///     try insert.run(7, "seven")
public final class Statement {
  let handle: OpaquePointer
  let database: Database

  init(_ sql: String, in database: Database, isKept: Bool) throws(SQLiteError) {
    var prepared: OpaquePointer?
    let flags = isKept ? UInt32(SQLITE_PREPARE_PERSISTENT) : 0
    let result = sqlite3_prepare_v3(database.handle, sql, -1, flags, &prepared, nil)
    guard result == SQLITE_OK else { throw SQLiteError(database.handle, result: result, sql: sql) }
    guard let prepared else {
      throw SQLiteError(code: SQLITE_MISUSE, extended: SQLITE_MISUSE, message: "empty statement", sql: sql)
    }
    handle = prepared
    self.database = database
  }

  deinit { sqlite3_finalize(handle) }

  /// Advances to the next row. Returns false if there is none.
  public func step() throws(SQLiteError) -> Bool {
    let result = sqlite3_step(handle)
    switch result {
    case SQLITE_ROW: return true
    case SQLITE_DONE: return false
    default: throw SQLiteError(database.handle, result: result, sql: sql)
    }
  }

  /// Sets the first parameters, executes a statement that returns no rows, and resets it.
  @inlinable public func run<each Value: SQLValue>(_ values: repeat each Value) throws(SQLiteError) {
    defer { reset() }
    var place: Int32 = 0
    for value in repeat each values {
      place += 1
      try bind(value, at: place)
    }
    _ = try step()
  }

  /// Sets a parameter. Parameters count from 1.
  @inlinable public func bind(_ value: some SQLValue, at place: Int32) throws(SQLiteError) {
    try value.bind(to: self, at: place)
  }

  /// Lets the statement run again. Parameters keep their values.
  public func reset() {
    // The result repeats the error of the last step, which was thrown then.
    sqlite3_reset(handle)
  }

  public var sql: String { sqlite3_sql(handle).map { String(cString: $0) } ?? "" }
  /// Whether the statement does not write to the database file.
  public var isReadOnly: Bool { sqlite3_stmt_readonly(handle) != 0 }
  /// Whether the text has parameters, which are null until they are bound.
  public var hasParameters: Bool { sqlite3_bind_parameter_count(handle) > 0 }
}

/// A value that a parameter of a statement can have.
public protocol SQLValue {
  func bind(to statement: Statement, at place: Int32) throws(SQLiteError)
}

extension Int64: SQLValue {
  public func bind(to statement: Statement, at place: Int32) throws(SQLiteError) {
    try statement.check(sqlite3_bind_int64(statement.handle, place, self))
  }
}

extension Int: SQLValue {
  public func bind(to statement: Statement, at place: Int32) throws(SQLiteError) {
    try statement.bind(Int64(self), at: place)
  }
}

extension UInt64: SQLValue {
  /// Binds the bits of an unsigned number. SQLite shows values above `Int64.max` as negative.
  public func bind(to statement: Statement, at place: Int32) throws(SQLiteError) {
    try statement.bind(Int64(bitPattern: self), at: place)
  }
}

extension String: SQLValue {
  /// Binds a copy.
  public func bind(to statement: Statement, at place: Int32) throws(SQLiteError) {
    var value = self
    let result = value.withUTF8 { bytes in
      Lent.text(UnsafeRawBufferPointer(bytes)).bind(to: statement, at: place, Self.copies)
    }
    try statement.check(result)
  }

  /// SQLITE_TRANSIENT, a macro that Swift does not import.
  private static var copies: sqlite3_destructor_type { unsafeBitCast(-1, to: sqlite3_destructor_type.self) }
}

extension Optional: SQLValue where Wrapped: SQLValue {
  public func bind(to statement: Statement, at place: Int32) throws(SQLiteError) {
    guard let self else { return try statement.check(sqlite3_bind_null(statement.handle, place)) }
    try statement.bind(self, at: place)
  }
}

/// Bytes that are bound without copying: they must stay valid until the statement is reset or the parameter is bound again.
public enum Lent: SQLValue {
  case text(UnsafeRawBufferPointer)
  case blob(UnsafeRawBufferPointer)

  public func bind(to statement: Statement, at place: Int32) throws(SQLiteError) {
    try statement.check(bind(to: statement, at: place, nil))
  }

  /// - Parameter release: nil for bytes that SQLite must not copy.
  fileprivate func bind(to statement: Statement, at place: Int32, _ release: sqlite3_destructor_type?) -> Int32 {
    switch self {
    case .text(let bytes):
      sqlite3_bind_text64(
        statement.handle, place, Self.start(of: bytes).assumingMemoryBound(to: CChar.self), UInt64(bytes.count),
        release,
        UInt8(SQLITE_UTF8))
    case .blob(let bytes):
      sqlite3_bind_blob64(statement.handle, place, Self.start(of: bytes), UInt64(bytes.count), release)
    }
  }

  /// A non-null address, also for an empty buffer: a null address would bind NULL.
  private static func start(of bytes: UnsafeRawBufferPointer) -> UnsafeRawPointer { bytes.baseAddress ?? nothing }

  private nonisolated(unsafe) static let nothing = UnsafeRawPointer(
    UnsafeMutableRawPointer.allocate(byteCount: 8, alignment: 8))
}

extension Statement {
  fileprivate func check(_ result: Int32) throws(SQLiteError) {
    if result != SQLITE_OK { throw SQLiteError(database.handle, result: result, sql: sql) }
  }
}

/// Columns of the current row, which count from 0.
extension Statement {
  public enum ValueType: Sendable {
    case integer, real, text, blob, null
  }

  public var columnCount: Int32 { sqlite3_column_count(handle) }

  /// The name of a column, or its `AS` name.
  public func name(of column: Int32) -> String { sqlite3_column_name(handle, column).map { String(cString: $0) } ?? "" }

  public func type(of column: Int32) -> ValueType {
    switch sqlite3_column_type(handle, column) {
    case SQLITE_INTEGER: .integer
    case SQLITE_FLOAT: .real
    case SQLITE_TEXT: .text
    case SQLITE_BLOB: .blob
    default: .null
    }
  }

  public func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(handle, column) }
  public func real(_ column: Int32) -> Double { sqlite3_column_double(handle, column) }

  /// The value of a column that was bound as unsigned.
  public func unsigned(_ column: Int32) -> UInt64 { UInt64(bitPattern: integer(column)) }

  /// The UTF-8 of a text, not copied: valid until the next step or reset.
  public func textBytes(_ column: Int32) -> UnsafeRawBufferPointer {
    let start = sqlite3_column_text(handle, column)
    return UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : Int(sqlite3_column_bytes(handle, column)))
  }

  /// The bytes of a blob, not copied: valid until the next step or reset.
  public func blobBytes(_ column: Int32) -> UnsafeRawBufferPointer {
    let start = sqlite3_column_blob(handle, column)
    return UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : Int(sqlite3_column_bytes(handle, column)))
  }

  /// A copy of a text; bytes that are not UTF-8 become U+FFFD.
  public func text(_ column: Int32) -> String { String(decoding: textBytes(column), as: UTF8.self) }
}

extension Statement {
  /// Whether only white space, comments and semicolons follow the statement in the text from which it was compiled.
  ///
  /// SQLite compiles the first statement of a text and ignores the rest.
  public func isAlone(in text: String) -> Bool {
    let rest = text.utf8.dropFirst(sql.utf8.count)
    return Statement.isBlank(String(decoding: rest, as: UTF8.self), in: database)
  }

  private static func isBlank(_ text: String, in database: Database) -> Bool {
    var prepared: OpaquePointer?
    var rest: UnsafePointer<CChar>?
    return text.withCString { start in
      var next = start
      while next.pointee != 0 {
        guard sqlite3_prepare_v3(database.handle, next, -1, 0, &prepared, &rest) == SQLITE_OK else { return false }
        guard prepared == nil else {
          sqlite3_finalize(prepared)
          return false
        }
        guard let rest, rest > next else { return true }
        next = rest
      }
      return true
    }
  }
}

/// An error of SQLite: its codes, its message and the statement.
public struct SQLiteError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The primary result code, such as `SQLiteError.full`.
  public let code: Int32
  /// The extended result code, which details I/O errors.
  public let extended: Int32
  /// SQLite's message, in English.
  public let message: String
  /// The statement, or the operation if there was no statement.
  public let sql: String
  /// The `errno` of an I/O error; 0 if there is none.
  public let systemCode: Int32

  public init(code: Int32, extended: Int32, message: String, sql: String, systemCode: Int32 = 0) {
    (self.code, self.extended, self.message, self.sql, self.systemCode) = (code, extended, message, sql, systemCode)
  }

  public var description: String { "SQLite error \(extended) (\(message)) in: \(sql)" }

  /// The last error of a connection.
  init(_ handle: OpaquePointer?, result: Int32, sql: String) {
    let extended = handle == nil ? result : sqlite3_extended_errcode(handle)
    // The connection may have a newer error, or none. The result of the call takes precedence.
    let matches = extended & 0xff == result & 0xff
    code = result & 0xff
    self.extended = matches ? extended : result
    message = String(cString: matches && handle != nil ? sqlite3_errmsg(handle) : sqlite3_errstr(result))
    systemCode = handle == nil ? 0 : sqlite3_system_errno(handle)
    self.sql = sql
  }
}

/// The primary result codes that callers distinguish.
extension SQLiteError {
  /// Another connection holds a lock.
  public static let busy = SQLITE_BUSY
  /// The file or its directory is not writable.
  public static let readOnly = SQLITE_READONLY
  /// The system failed to read or write.
  public static let inputOutput = SQLITE_IOERR
  /// The file's content is damaged.
  public static let corrupt = SQLITE_CORRUPT
  /// The disk, a quota or the page limit is full.
  public static let full = SQLITE_FULL
  public static let cannotOpen = SQLITE_CANTOPEN
  public static let notADatabase = SQLITE_NOTADB
  /// The statement cannot be compiled, or failed while it was executed.
  public static let badStatement = SQLITE_ERROR
  public static let interrupted = SQLITE_INTERRUPT
  /// The program lacks the permission to read or write the file.
  public static let permission = SQLITE_PERM
  /// The system or a ``MemoryBudget`` refuses more memory.
  public static let outOfMemory = SQLITE_NOMEM
  /// A text, blob or row exceeds the length limit.
  public static let tooBig = SQLITE_TOOBIG

  /// Whether a writer ended in the middle of a transaction, which a connection that may write must roll back.
  public var needsRollback: Bool { extended == SQLITE_READONLY | 3 << 8 }  // SQLITE_READONLY_ROLLBACK

  /// Whether the statement does not follow the grammar, so that it is wrong whatever tables there are.
  public var isSyntaxError: Bool {
    code == Self.badStatement
      && (message.hasSuffix("syntax error") || message == "incomplete input" || message.hasPrefix("unrecognized token"))
  }

  /// Whether the disk is full, in any form in which the system reports it.
  public var isFullDisk: Bool {
    code == Self.full || (code == Self.inputOutput && [ENOSPC, EDQUOT, EFBIG].contains(systemCode))
  }
}
