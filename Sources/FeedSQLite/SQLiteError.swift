import CSQLite
import Glibc

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
  /// The file cannot be opened.
  public static let cannotOpen = SQLITE_CANTOPEN
  /// The file is not a database.
  public static let notADatabase = SQLITE_NOTADB
  /// The statement cannot be compiled, or failed while it was executed.
  public static let badStatement = SQLITE_ERROR
  /// The statement was interrupted.
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
