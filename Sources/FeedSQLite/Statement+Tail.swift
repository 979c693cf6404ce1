import CSQLite

extension Statement {
  /// Whether nothing but white space, comments and semicolons follows the statement in the text it was compiled from.
  ///
  /// SQLite compiles the first statement of a text and leaves the rest alone.
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
