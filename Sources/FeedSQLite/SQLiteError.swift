import CSQLite

/// What SQLite refused, with its own words and the statement it was about.
public struct SQLiteError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The primary result code, such as `SQLiteError.full`.
  public let code: Int32
  /// The extended result code, which says more about I/O errors.
  public let extended: Int32
  /// SQLite's message, in English.
  public let message: String
  /// The statement, or what was done when there was none.
  public let sql: String
  /// The system's error number behind an I/O error; 0 when there is none.
  public let systemCode: Int32

  public init(code: Int32, extended: Int32, message: String, sql: String, systemCode: Int32 = 0) {
    self.code = code
    self.extended = extended
    self.message = message
    self.sql = sql
    self.systemCode = systemCode
  }

  public var description: String {
    "SQLite error \(extended) (\(message)) in: \(sql)"
  }

  /// The error that a connection met last.
  init(_ handle: OpaquePointer?, result: Int32, sql: String) {
    let extended = handle == nil ? result : sqlite3_extended_errcode(handle)
    // The connection may have met another error since, or none: the result of the call decides.
    let matches = extended & 0xff == result & 0xff
    code = result & 0xff
    self.extended = matches ? extended : result
    message = String(cString: matches && handle != nil ? sqlite3_errmsg(handle) : sqlite3_errstr(result))
    systemCode = handle == nil ? 0 : sqlite3_system_errno(handle)
    self.sql = sql
  }
}
