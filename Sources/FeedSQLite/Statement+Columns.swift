import CSQLite

/// Reading the columns of the present row, which count from 0.
extension Statement {
  /// SQLite's types of values.
  public enum ValueType: Sendable {
    case integer
    case real
    case text
    case blob
    case null
  }

  public var columnCount: Int32 { sqlite3_column_count(handle) }

  /// The name of a column, as the statement or `AS` gives it.
  public func name(of column: Int32) -> String {
    sqlite3_column_name(handle, column).map { String(cString: $0) } ?? ""
  }

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

  /// The bits of a number that was bound without sign.
  public func unsigned(_ column: Int32) -> UInt64 { UInt64(bitPattern: integer(column)) }

  /// The UTF-8 of a text, without a copy: valid until the next step or reset.
  public func textBytes(_ column: Int32) -> UnsafeRawBufferPointer {
    let start = sqlite3_column_text(handle, column)
    return UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : Int(sqlite3_column_bytes(handle, column)))
  }

  /// The bytes of a blob, without a copy: valid until the next step or reset.
  public func blobBytes(_ column: Int32) -> UnsafeRawBufferPointer {
    let start = sqlite3_column_blob(handle, column)
    return UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : Int(sqlite3_column_bytes(handle, column)))
  }

  /// A copy of a text; bytes that are not UTF-8 become U+FFFD.
  public func text(_ column: Int32) -> String { String(decoding: textBytes(column), as: UTF8.self) }
}
