import FeedModel
import FeedSQLite
import FeedSystem

/// One open database. Belongs to the thread of its reader.
///
/// The connection stays open between looks, without any lock, because `PRAGMA data_version` tells only the same connection
/// whether something was committed since. It is opened anew when there is another file of that name and after errors.
struct SourceConnection {
  /// Milliseconds that a lock of another program is waited for; one that lasts longer is reported.
  private static let patience: Int32 = 250

  private var database: Database?
  private var specification: SourceSpecification?
  private var identity: FileIdentity?
  /// The version of the rows that were read last; nil when there are none to rely on.
  private var version: Int64?

  /// Looks at the database and reads it if it is another one than before.
  mutating func look(_ specification: SourceSpecification) -> SourceReport.Outcome {
    if self.specification != specification { close() }
    self.specification = specification
    do {
      return try read(specification)
    } catch let error as SQLiteError where error.code == SQLiteError.busy {
      version = nil
      return .failed(SourceFault(error, specification.database).reason)
    } catch {
      close()
      return .failed(Self.reason(error, specification.database))
    }
  }

  private mutating func read(_ specification: SourceSpecification) throws -> SourceReport.Outcome {
    let identity = try FileIdentity(following: specification.database)
    if identity != self.identity { close() }
    let database = try self.database ?? Self.open(specification.database)
    self.database = database
    self.identity = identity
    let current = try database.integer("PRAGMA data_version")
    if let version, version == current { return .unchanged }
    version = nil
    // Compiling takes SQLite some microseconds; a kept statement would go on with the columns of an altered table.
    var rows: ManagedRows?
    while rows == nil { rows = try SourceQuery(specification, in: database).rows() }
    version = current
    return .rows(rows ?? ManagedRows())
  }

  private mutating func close() {
    database = nil
    identity = nil
    version = nil
  }

  private static func open(_ path: String) throws -> Database {
    let database = try Database(path: path, access: .readOnly, busyTimeout: patience)
    do {
      _ = try database.integer("SELECT count(*) FROM sqlite_schema")
      return database
    } catch  where [SQLiteError.cannotOpen, SQLiteError.readOnly].contains(error.code) {
      // A database in WAL mode whose directory may not be written: without a log there is nothing but the file to read.
      guard try isWithoutLog(path) else { throw error }
      return try Database(path: path, access: .immutable, busyTimeout: patience)
    }
  }

  private static func isWithoutLog(_ path: String) throws -> Bool {
    do throws(SystemError) {
      _ = try FileIdentity(following: (FilePath.resolved(path) ?? path) + "-wal")
      return false
    } catch {
      return error.isMissing
    }
  }

  private static func reason(_ error: any Error, _ path: String) -> String {
    switch error {
    case let error as SQLiteError: SourceFault(error, path).reason
    case let error as SourceFault: error.reason
    case let error as SystemError:
      error.isMissing ? "there is no file \(path); it is read as soon as it appears" : "\(error)"
    default: "\(error)"
    }
  }
}
