import CSQLite

/// A connection to a database file of the system's SQLite. Belongs to one thread at a time.
public final class Database {
  /// What the connection may do with the file.
  public enum Access: Sendable {
    /// Reads; the file must exist.
    case readOnly
    /// Reads a file that nobody writes meanwhile, without locks and without files beside it.
    case immutable
    /// Reads and writes a file that exists.
    case readWrite
    /// Reads and writes, and makes the file when there is none.
    case create
  }

  let handle: OpaquePointer
  /// The file, as it was given.
  public let path: String

  /// Opens a file. Symbolic links in `path` are followed.
  /// - Parameters:
  ///   - busyTimeout: milliseconds to wait for a lock of another connection before `SQLiteError.busy`.
  ///   - vfs: the name of the system layer; nil is SQLite's own.
  public init(
    path: String, access: Access, busyTimeout: Int32 = 0, vfs: String? = nil
  ) throws(SQLiteError) {
    var opened: OpaquePointer?
    let flags = access.flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_URI
    let result = sqlite3_open_v2(Self.address(of: path, access), &opened, flags, vfs)
    guard result == SQLITE_OK, let opened else {
      let error = SQLiteError(opened, result: result, sql: "open \(path)")
      sqlite3_close_v2(opened)
      throw error
    }
    handle = opened
    self.path = path
    sqlite3_busy_timeout(opened, busyTimeout)
  }

  deinit {
    // Statements that outlive the connection keep it half open until they go.
    sqlite3_close_v2(handle)
  }

  /// Executes statements that have no parameters, ignoring rows.
  public func execute(_ sql: String) throws(SQLiteError) {
    let result = sqlite3_exec(handle, sql, nil, nil, nil)
    guard result == SQLITE_OK else { throw SQLiteError(handle, result: result, sql: sql) }
  }

  /// Compiles one statement.
  /// - Parameter isKept: whether it will be used again and again, which lets SQLite choose its memory.
  public func prepare(_ sql: String, isKept: Bool = true) throws(SQLiteError) -> Statement {
    try Statement(sql, in: self, isKept: isKept)
  }

  /// Rows that the last INSERT, UPDATE or DELETE changed.
  public var changes: Int { Int(sqlite3_changes64(handle)) }

  /// The row number of the last INSERT.
  public var lastInsertedRow: Int64 { sqlite3_last_insert_rowid(handle) }

  /// Whether a transaction is open.
  public var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }

  /// Whether the file can only be read.
  public var isReadOnly: Bool { sqlite3_db_readonly(handle, "main") == 1 }

  /// Milliseconds to wait for a lock of another connection.
  public func setBusyTimeout(milliseconds: Int32) {
    sqlite3_busy_timeout(handle, milliseconds)
  }

  /// The library's version, such as "3.40.1".
  public static var libraryVersion: String { String(cString: sqlite3_libversion()) }

  /// The name to open. Only an immutable file needs to be told with a URI, in which %, ? and # are written otherwise.
  private static func address(of path: String, _ access: Access) -> String {
    if access != .immutable && !path.hasPrefix("file:") { return path }
    var address = "file:"
    if path.hasPrefix("/") { address += "//" }
    for scalar in path.unicodeScalars {
      switch scalar {
      case "%": address += "%25"
      case "?": address += "%3f"
      case "#": address += "%23"
      default: address.unicodeScalars.append(scalar)
      }
    }
    return access == .immutable ? address + "?immutable=1" : address
  }
}

extension Database.Access {
  fileprivate var flags: Int32 {
    switch self {
    case .readOnly, .immutable: SQLITE_OPEN_READONLY
    case .readWrite: SQLITE_OPEN_READWRITE
    case .create: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
    }
  }
}
