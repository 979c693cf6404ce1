import CSQLite

/// A connection to a database file of the system's SQLite. Used by one thread at a time.
///
///     let database = try Database(path: path, access: .readOnly)
///     let epoch = try database.text("SELECT value FROM meta WHERE key = 'epoch'")
public final class Database {
  /// The access of the connection to the file.
  public enum Access: Sendable {
    /// Reads an existing file.
    case readOnly
    /// Reads a file that no process writes at the same time, and ignores its log. Takes no locks and writes no file.
    case immutable
    /// Reads a file and its log that no process writes at the same time. Takes no locks and writes no file: the index
    /// of the log, which is normally a shared file, is kept in memory.
    case quiescent
    /// Reads and writes an existing file.
    case readWrite
    /// Reads and writes, and creates the file if it is missing.
    case create
  }

  /// The maximum bytes of the path of a file, absolute and without symbolic links. SQLite appends up to 8 bytes to it.
  public static var maxPathBytes: Int { Int(sqlite3_vfs_find(nil)?.pointee.mxPathname ?? 512) - 8 }

  let handle: OpaquePointer
  /// The path as given to `init`.
  public let path: String
  private var cancellation: Cancellation?

  /// Opens a file. Symbolic links in `path` are followed.
  /// - Parameter busyTimeout: milliseconds to wait for a lock of another connection before `SQLiteError.busy`.
  public init(path: String, access: Access, busyTimeout: Int32 = 0, vfs: String? = nil) throws(SQLiteError) {
    var opened: OpaquePointer?
    let flags = access.flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_URI
    let layer = access == .quiescent ? "unix-none" : vfs
    let result = sqlite3_open_v2(Self.address(of: path, access), &opened, flags, layer)
    guard result == SQLITE_OK, let opened else {
      let error = SQLiteError(opened, result: result, sql: "open \(path)")
      sqlite3_close_v2(opened)
      throw error
    }
    handle = opened
    self.path = path
    sqlite3_busy_timeout(opened, busyTimeout)
    if access == .quiescent { try execute("PRAGMA locking_mode = EXCLUSIVE") }
  }

  deinit {
    // Statements that outlive the connection keep it open until they are finalized.
    sqlite3_close_v2(handle)
  }

  /// Executes statements that have no parameters; ignores rows.
  public func execute(_ sql: String) throws(SQLiteError) {
    let result = sqlite3_exec(handle, sql, nil, nil, nil)
    guard result == SQLITE_OK else { throw SQLiteError(handle, result: result, sql: sql) }
  }

  /// - Parameter isKept: whether it is used many times, which lets SQLite choose its memory.
  public func prepare(_ sql: String, isKept: Bool = true) throws(SQLiteError) -> Statement {
    try Statement(sql, in: self, isKept: isKept)
  }

  public var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }

  /// The file name to open. Only an immutable file needs a URI, in which %, ? and # are escaped.
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
    case .readOnly, .immutable, .quiescent: SQLITE_OPEN_READONLY
    case .readWrite: SQLITE_OPEN_READWRITE
    case .create: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
    }
  }
}

/// Single values.
extension Database {
  /// The integer in the first column of the first row; nil if there is no row or it is NULL.
  public func integer(_ sql: String) throws(SQLiteError) -> Int64? {
    let statement = try prepare(sql, isKept: false)
    guard try statement.step(), statement.type(of: 0) != .null else { return nil }
    return statement.integer(0)
  }

  /// The text in the first column of the first row; nil if there is no row or it is NULL.
  public func text(_ sql: String) throws(SQLiteError) -> String? {
    let statement = try prepare(sql, isKept: false)
    guard try statement.step(), statement.type(of: 0) != .null else { return nil }
    return statement.text(0)
  }
}

extension Database {
  /// Calls `body` in one read transaction: all its statements see the same rows and the same schema.
  public func snapshot<Result>(_ body: () throws -> Result) throws -> Result {
    precondition(!isInTransaction, "transactions do not nest")
    try execute("BEGIN")
    defer { rollBack() }
    return try body()
  }

  /// Rolls back the open transaction, if any. Some errors have already rolled it back.
  public func rollBack() {
    guard isInTransaction else { return }
    try? execute("ROLLBACK")
  }
}

/// Limits for files and statements of other programs.
extension Database {
  /// Rejects texts, blobs and rows of more than `bytes` with `SQLiteError.tooBig`, before memory is allocated for them.
  public func limitLength(bytes: Int) { sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, Int32(clamping: bytes)) }

  /// Interrupts a statement with `SQLiteError.interrupted` after about `count` more instructions of SQLite's virtual
  /// machine on this connection. Each call resets the count.
  public func limitSteps(_ count: Int) {
    let period: Int32 = 10_000
    var left = max(count / Int(period), 1)
    interrupt(every: period) {
      if left > 0 { left -= 1 }
      return left == 0
    }
  }

  /// Interrupts statements with `SQLiteError.interrupted` when `isCancelled` returns true. It is called every 1,000
  /// instructions of SQLite's virtual machine on this connection, and replaces ``limitSteps(_:)``.
  public func interrupt(when isCancelled: @escaping () -> Bool) { interrupt(every: 1000, when: isCancelled) }

  private func interrupt(every instructions: Int32, when isCancelled: @escaping () -> Bool) {
    let cancellation = Cancellation(isCancelled)
    self.cancellation = cancellation
    sqlite3_progress_handler(
      handle, instructions,
      { context in
        guard let context else { return 0 }
        return Unmanaged<Cancellation>.fromOpaque(context).takeUnretainedValue().isCancelled() ? 1 : 0
      }, Unmanaged.passUnretained(cancellation).toOpaque())
  }

  /// Prepares the connection for a file of another program: the schema calls no functions and virtual tables with side
  /// effects, triggers do not run, no other file is attached, and pages are verified when they are read.
  /// - Parameter maxStatementBytes: the maximum length of a statement, also of those in the schema; longer ones are
  ///   `SQLiteError.tooBig`.
  public func distrustSchema(maxStatementBytes: Int) {
    csqlite_distrust_schema(handle)
    sqlite3_limit(handle, SQLITE_LIMIT_SQL_LENGTH, Int32(clamping: maxStatementBytes))
    sqlite3_limit(handle, SQLITE_LIMIT_ATTACHED, 0)
  }
}

/// Whether the work of a connection is still wanted.
private final class Cancellation {
  let isCancelled: () -> Bool

  init(_ isCancelled: @escaping () -> Bool) { self.isCancelled = isCancelled }
}

/// The write-ahead log.
extension Database {
  /// Moves the log into the database file, and truncates it. Waits for readers and writers. Returns whether they let it do so.
  public func emptyLog() throws(SQLiteError) -> Bool {
    var (pages, moved): (Int32, Int32) = (0, 0)
    let result = sqlite3_wal_checkpoint_v2(handle, nil, SQLITE_CHECKPOINT_TRUNCATE, &pages, &moved)
    guard result == SQLITE_OK else { throw SQLiteError(handle, result: result, sql: "checkpoint") }
    return moved == pages
  }

  /// Syncs the database file. Returns false on failure.
  @discardableResult
  public func syncFile() -> Bool {
    var file: UnsafeMutablePointer<sqlite3_file>?
    let result = withUnsafeMutablePointer(to: &file) { place in
      sqlite3_file_control(handle, "main", SQLITE_FCNTL_FILE_POINTER, place)
    }
    guard result == SQLITE_OK, let file, let sync = file.pointee.pMethods?.pointee.xSync else { return false }
    return sync(file, SQLITE_SYNC_NORMAL | SQLITE_SYNC_DATAONLY) == SQLITE_OK
  }

  /// Keeps the log when this connection, the last one, closes.
  public func keepLogWhenClosing() { csqlite_keep_log_when_closing(handle) }
}

/// The memory that SQLite may allocate for a connection to a file that is not trusted. Used by the thread of the
/// connection, for everything that it does with it; other connections are not affected.
///
/// SQLite calls no progress handler while it compiles a statement. A short schema, such as views that each name the one
/// below twice, can take any amount of memory and time there; the limits of a budget bound both.
///
///     let memory = MemoryBudget()
///     memory.limit(moreBytes: 1 << 20, allocations: 100_000)
///     try memory.use { try database.prepare(sql) }  // throws SQLiteError.outOfMemory beyond a limit
public final class MemoryBudget {
  private let budget = UnsafeMutablePointer<csqlite_budget>.allocate(capacity: 1)

  /// A budget without limits.
  public init() { budget.initialize(to: csqlite_budget(used: 0, max: .max, allocations: .max)) }

  deinit { budget.deallocate() }

  /// The bytes that SQLite holds of those that it allocated in ``use(_:)``.
  public var usedBytes: Int { Int(budget.pointee.used) }

  /// Counts nothing as held any more. Called while the connection is closed: what is left then belongs to connections of other threads
  /// to the same file, which share some memory and may free what this thread allocated.
  public func forget() { budget.pointee.used = 0 }

  /// Lets SQLite allocate `moreBytes` above what it holds now, in at most so many allocations. Replaces the limits of
  /// before. The time of a compilation is about proportional to its allocations.
  public func limit(moreBytes: Int, allocations: Int = .max) {
    budget.pointee.max = Int64(usedBytes + moreBytes)
    budget.pointee.allocations = Int64(allocations)
  }

  /// Calls `body` with the limits in force. Calls do not nest.
  public func use<Result, Failure>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result {
    csqlite_use_budget(budget)
    defer { csqlite_use_budget(nil) }
    return try body()
  }
}
