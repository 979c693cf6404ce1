import FeedModel
import FeedSQLite
import FeedSystem

/// An open database of a managed feed. Used by the thread of its reader.
///
/// The connection stays open between looks, without locks: `PRAGMA data_version` detects new commits only on the same
/// connection. It is reopened after errors, when the path names another file, when there is another log or index, and when the file was
/// written without a commit, as cp does. A database in WAL mode in a directory that is not writable is opened as an immutable file, which
/// detects no commits; then the stamp of the file does.
struct SourceConnection {
  /// Milliseconds to wait for a lock of another program before the lock is reported as an error.
  private static let patience: Int32 = 250
  /// The minimum length limit for one value or row of the database, so that a query may compute with more than it
  /// returns.
  private static let leastLength = 1 << 20
  /// The maximum number of virtual machine instructions to read a schema, about ten for each table, index and view.
  private static let schemaSteps = 200_000
  /// The maximum bytes of memory for a schema.
  private static let schemaMemory = 64 << 20
  /// The maximum bytes and allocations to compile the query with the views that it names. At these limits a compilation
  /// takes less than a second.
  private static let queryMemory = 16 << 20
  private static let queryAllocations = 1_000_000
  /// The maximum bytes of memory to execute the query, besides those for long values.
  private static let rowMemory = 64 << 20
  /// The number of longest values that the execution may hold in memory.
  private static let heldValues = 16
  fileprivate static let schemaQuery = "SELECT count(*) FROM sqlite_schema"
  /// The suffixes of the files that SQLite opens.
  private static let suffixes = ["", "-wal", "-shm", "-journal"]

  /// Nanoseconds that the query may take.
  private let timeLimit: UInt64
  private let memory = MemoryBudget()
  private var database: Database?
  private var specification: SourceSpecification?
  /// The identities of the file, its log and the index of that, which the connection has open; nil for those that did not exist.
  private var files: [FileIdentity?] = []
  /// The state of the file that was opened as immutable; nil for other connections.
  private var stamp: FileStamp?
  /// The data version of the rows that were read last; nil if they must be read again.
  private var version: Int64?
  /// The state of the file before these rows were read.
  private var stampOfRows: FileStamp?

  init(timeLimit: Duration = .seconds(30)) { self.timeLimit = timeLimit.clampedNanoseconds }

  /// Reads the database if there were commits since the last look.
  /// - Parameters:
  ///   - again: whether it is opened again, and read also without commits.
  ///   - isCancelled: whether the report is no longer wanted. It is called from time to time while the query runs.
  mutating func look(
    _ specification: SourceSpecification, again: Bool = false, unless isCancelled: @escaping () -> Bool = { false }
  ) -> SourceReport.Outcome {
    return memory.use {
      if again { close() }
      return lookWithinBudget(specification, isCancelled)
    }
  }

  private mutating func lookWithinBudget(
    _ specification: SourceSpecification, _ isCancelled: @escaping () -> Bool
  ) -> SourceReport.Outcome {
    if self.specification != specification { close() }
    self.specification = specification
    do {
      return try read(specification, isCancelled)
    } catch let error as SQLiteError where error.code == SQLiteError.busy {
      version = nil
      return .failed(SourceFault(error, specification.database).reason)
    } catch {
      close()
      return .failed(SourceFault(any: error, specification.database).reason)
    }
  }

  private mutating func read(
    _ specification: SourceSpecification, _ isCancelled: @escaping () -> Bool
  ) throws -> SourceReport.Outcome {
    let files = try Self.checkedFiles(specification.database)
    // Nobody else removes the log of an open database, unless by mistake. A program that has it open goes on with the removed one, as
    // this connection does. Another one makes a new log, which this connection would not see.
    if zip(files, self.files).contains(where: { $0 != nil && $0 != $1 }) || !isStillImmutable { close() }
    let database = try self.database ?? open(specification.database)
    self.database = database
    keep(files)
    let found = FileStamp(at: FilePath.resolved(specification.database) ?? specification.database)
    let current = try database.integer("PRAGMA data_version")
    if let version, version == current {
      if found == stampOfRows { return .unchanged }
      // A checkpoint also writes to the file without a commit. Otherwise the pages that the connection keeps may be old.
      close()
      return try read(specification, isCancelled)
    }
    version = nil
    stampOfRows = found
    let rows = try database.snapshot { try readRows(specification, in: database, isCancelled) }
    guard isStillImmutable else { throw SourceFault("\(specification.database) was written while it was read") }
    // A later write might leave the stamp of a file that was just written as it is.
    version = stamp?.isSettled == false ? nil : current
    // Reading creates the log and its index.
    keep(try Self.checkedFiles(specification.database))
    return .rows(rows)
  }

  /// Notes the identities of the files of the connection that are not known yet.
  private mutating func keep(_ found: [FileIdentity?]) {
    files = files.isEmpty ? found : zip(files, found).map { $0 ?? $1 }
  }

  /// Whether nobody wrote to the file that is open as immutable. True for other connections.
  private var isStillImmutable: Bool {
    guard let stamp, let path = specification?.database else { return true }
    return stamp == Self.stampWithoutLog(path)
  }

  /// Reads all rows. Called in a transaction.
  private func readRows(
    _ specification: SourceSpecification, in database: Database, _ isCancelled: @escaping () -> Bool
  ) throws -> ManagedRows {
    // Compiles the query each time, which takes microseconds. A cached statement would return the former columns of
    // altered tables.
    let query = try compile(specification, in: database)
    let deadline = MonotonicClock.now + timeLimit
    database.interrupt { MonotonicClock.now > deadline || isCancelled() }
    memory.limit(moreBytes: Self.rowMemory + Self.heldValues * Self.length(specification))
    return try query.rows()
  }

  /// Compiles the query. Called in a transaction, in which the schema stays as it is: SQLite compiles the query only once,
  /// within the limits for that.
  private func compile(_ specification: SourceSpecification, in database: Database) throws -> SourceQuery {
    try readSchema(of: database)
    database.limitLength(bytes: Self.length(specification))
    memory.limit(moreBytes: Self.queryMemory, allocations: Self.queryAllocations)
    return try SourceQuery(specification, in: database)
  }

  /// The length limit for one value or row.
  private static func length(_ specification: SourceSpecification) -> Int {
    max(specification.maxRowBytes, leastLength)
  }

  /// Opens the database and compiles the query without executing it.
  /// - Returns: what is wrong with the query; nil if nothing is.
  /// - Throws: if the database cannot be read.
  mutating func check(_ specification: SourceSpecification) throws -> String? {
    try memory.use {
      _ = try Self.checkedFiles(specification.database)
      let database = try open(specification.database)
      return try database.snapshot {
        do {
          _ = try compile(specification, in: database)
          return nil
        } catch let error as SourceFault {
          return error.reason
        } catch let error as SQLiteError where error.code == SQLiteError.badStatement {
          return error.message
        }
      }
    }
  }

  private mutating func close() {
    database = nil
    files = []
    stamp = nil
    version = nil
    stampOfRows = nil
  }

  /// Returns the identities of the file, its log and the index of that.
  ///
  /// Refuses files that are not regular: opening a FIFO would block the thread, and opening a device has effects.
  private static func checkedFiles(_ path: String) throws -> [FileIdentity?] {
    _ = try FileIdentity(following: path)
    let target = FilePath.resolved(path) ?? path
    let identities = try suffixes.map { suffix in
      let identity = try? FileIdentity(following: target + suffix)
      guard identity?.isRegularFile != false else {
        throw SourceFault("\(target + suffix) is not a regular file; name a database file")
      }
      return identity
    }
    return Array(identities.prefix(3))
  }

  private mutating func open(_ path: String) throws -> Database {
    memory.forget()
    memory.limit(moreBytes: Self.schemaMemory)
    let database = try Self.connect(path, .readOnly)
    do {
      try readSchema(of: database)
      return database
    } catch  where Self.mayLackOnlyTheIndex(error) {
      // A WAL database in a read-only directory. If there is no log, the file alone is complete.
      guard let stamp = Self.stampWithoutLog(path) else { throw error }
      self.stamp = stamp
      return try Self.connect(path, .immutable)
    }
  }

  /// Whether the reason for an error may be that the index of the log of a database in WAL mode cannot be created.
  private static func mayLackOnlyTheIndex(_ error: SQLiteError) -> Bool {
    [SQLiteError.cannotOpen, SQLiteError.readOnly].contains(error.code) && !error.needsRollback
  }

  private static func connect(_ path: String, _ access: Database.Access) throws(SQLiteError) -> Database {
    let database = try Database(path: path, access: access, busyTimeout: patience)
    database.distrustSchema(maxStatementBytes: leastLength)
    return database
  }

  /// Reads the schema if it is unknown or has changed, within limits. Its statements come from the other program.
  private func readSchema(of database: Database) throws(SQLiteError) {
    database.limitLength(bytes: Self.leastLength)
    database.limitSteps(Self.schemaSteps)
    // A schema that is known already is freed before another one is read.
    memory.limit(moreBytes: max(Self.schemaMemory - memory.usedBytes, 0))
    _ = try database.integer(Self.schemaQuery)
  }

  /// The state of a database file that is complete without its log; nil if there is a log.
  private static func stampWithoutLog(_ path: String) -> FileStamp? {
    let file = FilePath.resolved(path) ?? path
    guard (FilePath.size(of: file + "-wal") ?? 0) == 0 else { return nil }
    return FileStamp(at: file)
  }
}

/// The reason why a database cannot be read, for the operator.
struct SourceFault: Error, Equatable {
  let reason: String

  init(_ reason: String) { self.reason = reason }

  init(any error: any Error, _ path: String) {
    switch error {
    case let error as SQLiteError: self.init(error, path)
    case let error as SourceFault: self = error
    case let error as SystemError where error.isMissing:
      self.init("there is no file \(path); it is read as soon as it appears")
    default: self.init("\(error)")
    }
  }

  init(_ error: SQLiteError, _ path: String) {
    reason =
      switch error.code {
      case SQLiteError.busy: "another program has locked \(path); it is read when the lock is released"
      case SQLiteError.notADatabase: "\(path) is not an SQLite database, or it is encrypted"
      case SQLiteError.corrupt: "\(path) is damaged (\(error.message)); restore it or repair it with sqlite3's .recover"
      case SQLiteError.interrupted where error.sql == SourceConnection.schemaQuery,
        SQLiteError.outOfMemory where error.sql == SourceConnection.schemaQuery,
        SQLiteError.tooBig where error.sql == SourceConnection.schemaQuery:
        "the schema of \(path) is too large; remove tables and views, or name a database with fewer of them"
      case SQLiteError.interrupted: "the query on \(path) takes too long; add an index or a LIMIT"
      case SQLiteError.outOfMemory:
        "the query on \(path), with the views that it names, takes too much memory; simplify it"
      case SQLiteError.tooBig:
        "the query on \(path) reads a value that is too long (maxElementBytes); select a part of it with substr"
      case SQLiteError.readOnly where error.needsRollback:
        "\(path) was left in the middle of a transaction; open it once with the program that writes it"
      case SQLiteError.cannotOpen, SQLiteError.permission, SQLiteError.readOnly:
        "cannot open \(path) (\(error.message)); the daemon must be able to read it and, for a database in WAL mode, "
          + "the -wal and -shm files beside it"
      default: "\(path): \(error.message)"
      }
  }
}
