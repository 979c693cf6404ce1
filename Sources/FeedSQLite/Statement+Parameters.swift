import CSQLite

/// Binding parameters, which count from 1.
extension Statement {
  public func bind(_ value: Int64, at place: Int32) throws(SQLiteError) {
    try check(sqlite3_bind_int64(handle, place, value))
  }

  /// A number without sign keeps its bits: beyond `Int64.max` SQLite shows it as negative.
  public func bind(_ value: UInt64, at place: Int32) throws(SQLiteError) {
    try bind(Int64(bitPattern: value), at: place)
  }

  public func bind(_ value: Int, at place: Int32) throws(SQLiteError) {
    try bind(Int64(value), at: place)
  }

  /// A copy of `value`.
  public func bind(_ value: String, at place: Int32) throws(SQLiteError) {
    var value = value
    let result = value.withUTF8 { bytes in
      sqlite3_bind_text64(
        handle, place, Self.start(of: UnsafeRawBufferPointer(bytes)).assumingMemoryBound(to: CChar.self),
        UInt64(bytes.count), Self.copies, UInt8(SQLITE_UTF8))
    }
    try check(result)
  }

  /// NULL.
  public func bindNull(at place: Int32) throws(SQLiteError) {
    try check(sqlite3_bind_null(handle, place))
  }

  /// Text whose bytes are not copied: they must stay until the statement is reset or the parameter gets another value.
  public func bind(lentText bytes: UnsafeRawBufferPointer, at place: Int32) throws(SQLiteError) {
    try check(
      sqlite3_bind_text64(
        handle, place, Self.start(of: bytes).assumingMemoryBound(to: CChar.self), UInt64(bytes.count), nil,
        UInt8(SQLITE_UTF8)))
  }

  /// A blob whose bytes are not copied: they must stay until the statement is reset or the parameter gets another value.
  public func bind(lentBlob bytes: UnsafeRawBufferPointer, at place: Int32) throws(SQLiteError) {
    try check(sqlite3_bind_blob64(handle, place, Self.start(of: bytes), UInt64(bytes.count), nil))
  }

  /// SQLITE_TRANSIENT, a macro that Swift does not import.
  private static var copies: sqlite3_destructor_type {
    unsafeBitCast(-1, to: sqlite3_destructor_type.self)
  }

  /// An address for no bytes too: a null address would be NULL instead of an empty value.
  private static func start(of bytes: UnsafeRawBufferPointer) -> UnsafeRawPointer {
    if let base = bytes.baseAddress { return base }
    return nothing
  }

  private nonisolated(unsafe) static let nothing = UnsafeRawPointer(
    UnsafeMutableRawPointer.allocate(byteCount: 8, alignment: 8))

  private func check(_ result: Int32) throws(SQLiteError) {
    if result != SQLITE_OK { throw SQLiteError(database.handle, result: result, sql: sql) }
  }
}
