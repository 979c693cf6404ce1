import CSQLite

/// Reading single values.
extension Database {
  /// The integer in the first column of the first row; nil when there is no row or it is NULL.
  public func integer(_ sql: String) throws(SQLiteError) -> Int64? {
    let statement = try prepare(sql, isKept: false)
    guard try statement.step(), statement.type(of: 0) != .null else { return nil }
    return statement.integer(0)
  }

  /// The text in the first column of the first row; nil when there is no row or it is NULL.
  public func text(_ sql: String) throws(SQLiteError) -> String? {
    let statement = try prepare(sql, isKept: false)
    guard try statement.step(), statement.type(of: 0) != .null else { return nil }
    return statement.text(0)
  }
}
