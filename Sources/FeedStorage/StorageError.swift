import FeedJSON
import FeedModel
import FeedSQLite
import FeedSystem
import Glibc

/// An error of the store: what failed, where, and what the operator can do.
public struct StorageError: Error, Equatable, Sendable, CustomStringConvertible {
  public enum Kind: Sendable {
    /// The disk or a quota is full.
    case noSpace
    /// The system failed to read or write.
    case inputOutput
    /// The file or its directory may not be read or written.
    case forbidden
    /// The directory of the file to be created does not exist.
    case noDirectory
    /// The file or its directory was removed or replaced while it is open.
    case vanished
    /// Another program shortened or overwrote the files while they are open.
    case damaged
    case exists
    /// The file does not exist.
    case absent
    /// A member of a group has written no image yet.
    case noImage
    /// A state directory that holds the images of groups in directories of their own.
    case ofGroup
    /// A newer version of the program wrote the file.
    case newerVersion
    /// The journal must be replayed by another version of the program.
    case otherRules
    case corrupt
    /// The file is a database of another program.
    case foreign
    /// Acknowledged changes are missing.
    case lost
    /// A segment of the log is damaged.
    case brokenLog
    /// Acknowledged rows of a table `journal` are missing.
    case lostRows
    /// The journal does not continue the image.
    case doesNotFit
    /// The journal has no batch of that number.
    case noSuchBatch
    /// Another process uses the file.
    case busy
    /// A daemon uses the directory.
    case inUse
    /// The file has another name, by which another daemon may use it.
    case linked
    /// The file is a symbolic link to a file that another daemon may use.
    case redirected
    /// A directory has the name of the file.
    case obstructed
    /// The backup to be restored is damaged.
    case badBackup
    /// There is a state that would be replaced.
    case occupied
    /// Anything else.
    case other
  }

  public let kind: Kind
  /// The file or the directory.
  public let path: String
  /// The cause, as a clause without a full stop.
  public let reason: String

  public init(_ kind: Kind, path: String, reason: String) {
    (self.kind, self.path, self.reason) = (kind, path, reason)
  }

  /// Creates the error of a stored feed that cannot be restored.
  init(_ error: RestoreError, path: String) {
    self.init(.corrupt, path: path, reason: "feed \"\(error.feed)\": \(error.reason)")
  }

  public var description: String { "\(path): \(reason); \(remedy)" }

  /// The next step, as a clause.
  public var remedy: String {
    switch kind {
    case .noSpace: "free space on its file system, or raise the quota"
    case .inputOutput: "check the disk, quotas and limits, and the system's log"
    case .forbidden: "give the user of this process read and write access to the directory and its files"
    case .noDirectory: "create the directory \(FilePath.directory(of: path)), or choose another one"
    case .vanished:
      "put the same files back; the daemon loses its state when it stops, so save it first (feedclient snapshot FEED)"
    case .damaged:
      "the daemon loses its last changes when it stops, so save them (feedclient snapshot FEED); "
        + "then stop it and restore the files or a backup"
    case .exists: "choose another name, or move the file away"
    case .absent: "name the directory of a state with --state"
    case .noImage: "write one with feedclient group image, and try again"
    case .ofGroup: "name that directory with --state"
    case .newerVersion: "use that version of feedd, or another --state directory"
    case .otherRules:
      "nothing was changed; start that version of feedd once and stop it with SIGTERM, which writes an image, or restore a backup"
    case .corrupt:
      "nothing was changed; run '\(check)', and restore a backup (feedclient restore)"
    case .foreign:
      "nothing was changed; restore a backup (feedclient restore), or choose another --state directory"
    case .lost, .brokenLog:
      "nothing was changed; run '\(check)'; restore the files that belong together, or a backup; to accept the loss of what "
        + "follows, start once with --skip-damaged (a new epoch begins)"
    case .lostRows:
      "nothing was changed; restore the files that belong together, or a backup; to accept the loss, "
        + "remove \(StateMark.path(of: path)) (a new epoch begins)"
    case .doesNotFit:
      "nothing was changed; keep the files, and restore a backup or use another --state directory"
    case .noSuchBatch: "nothing was changed; start without --skip-batch"
    case .busy: "stop the program that uses it"
    case .inUse: "stop the daemon first"
    case .linked:
      "nothing was changed; remove its other names (find DIRECTORY -samefile \(path)), or give --state a copy of the files"
    case .redirected: "nothing was changed; give --state the directory that holds the file itself"
    case .obstructed: "move that directory away, which feedd did not create"
    case .badBackup: "nothing was changed; restore another backup"
    case .occupied: "give --replace to replace it"
    case .other: "run '\(check)'"
    }
  }

  /// The command that verifies the state.
  private var check: String { "feedd --check --state \(isDirectory ? path : FilePath.directory(of: path))" }

  private var isDirectory: Bool { (try? FileIdentity(following: path))?.isDirectory ?? false }
}

extension StorageError {
  /// The error of a system call on a file of the state directory.
  public init(_ error: SystemError, path: String) {
    let kind: Kind =
      switch error.code {
      case ENOSPC, EDQUOT: .noSpace
      case EACCES, EPERM, EROFS: .forbidden
      case ENOENT, ENOTDIR: .vanished
      case ELOOP: .redirected
      case EISDIR: .obstructed
      default: .inputOutput
      }
    let file = error.path.map { " \(FilePath.name(of: $0))" } ?? ""
    self.init(
      kind, path: path,
      reason: kind == .vanished
        ? "the file or its directory was removed (cannot \(error.operation)\(file))"
        : "cannot \(error.operation)\(file): \(error.reason)")
  }
}

extension StorageError {
  init(_ error: SQLiteError, path: String) {
    self.init(
      Self.kind(of: error), path: path, reason: "\(error.message) (SQLite \(error.extended)\(error.systemText))")
  }

  static func absent(_ path: String) -> StorageError {
    let isDirectory = (try? FileIdentity(following: path))?.isDirectory ?? false
    if isDirectory, StateImages.isDirectoryOfGroup(FilePath.name(of: path)) {
      return StorageError(.noImage, path: path, reason: "this member of a group has written no image yet")
    }
    let names = (try? SystemDirectory(path, isReadOnly: true).names()) ?? []
    if let image = names.filter(StateImages.isDirectoryOfGroup).min() {
      return StorageError(
        .ofGroup, path: path, reason: "there is no state here, but that of a group in \(path)/\(image)")
    }
    return StorageError(.absent, path: path, reason: "there is no state here")
  }

  static func lost(_ count: Int64, path: String) -> StorageError {
    StorageError(
      .lostRows, path: path,
      reason: "\(grouped(count)) acknowledged rows of the journal are missing; its log \(path)-wal is damaged or gone")
  }

  /// Runs `body`, and adds the file's path to its error.
  static func naming<Result>(
    _ path: String, _ body: () throws(SQLiteError) -> Result
  ) throws(StorageError) -> Result {
    do throws(SQLiteError) { return try body() } catch { throw StorageError(error, path: path) }
  }

  /// Performs an operation of the system on the file at a path.
  static func ofFile<Result: ~Copyable>(
    _ path: @autoclosure () -> String, _ body: @autoclosure () throws(SystemError) -> Result
  ) throws(StorageError) -> Result {
    do throws(SystemError) { return try body() } catch { throw StorageError(error, path: path()) }
  }

  /// Performs an operation of the system whose error names what it was done to.
  static func ofSystem<Result: ~Copyable>(
    _ kind: Kind = .other, path: String, _ body: @autoclosure () throws(SystemError) -> Result
  ) throws(StorageError) -> Result {
    do throws(SystemError) { return try body() } catch { throw StorageError(kind, path: path, reason: "\(error)") }
  }

  private static func kind(of error: SQLiteError) -> Kind {
    if error.isFullDisk { return .noSpace }
    switch error.code {
    case SQLiteError.inputOutput: return .inputOutput
    case SQLiteError.readOnly, SQLiteError.permission, SQLiteError.cannotOpen: return .forbidden
    case SQLiteError.corrupt: return .corrupt
    case SQLiteError.notADatabase: return .foreign
    case SQLiteError.busy: return .busy
    default: return .other
    }
  }
}

extension SQLiteError {
  fileprivate var systemText: String { systemCode == 0 ? "" : ", errno \(systemCode)" }
}
