import FeedSQLite

/// Why the store cannot do what it was asked: what happened, where, and what the operator can do about it.
public struct StorageError: Error, Equatable, Sendable, CustomStringConvertible {
  public enum Kind: Sendable {
    /// The disk or a quota is full.
    case noSpace
    /// The system failed to read or write.
    case inputOutput
    /// The file or its directory may not be written, or not be read.
    case forbidden
    /// The file or its directory is not there any more.
    case vanished
    /// The file to be made is there already.
    case exists
    /// There is nothing to be read.
    case absent
    /// A newer version of the program wrote it.
    case newerVersion
    /// The file is damaged.
    case corrupt
    /// It is a database of something else.
    case foreign
    /// Something that was acknowledged is not there.
    case lost
    /// The journal does not continue the image.
    case doesNotFit
    /// Another process uses the file.
    case busy
    /// Anything else.
    case other
  }

  public let kind: Kind
  /// The database file.
  public let path: String
  /// What happened, as a clause without a full stop.
  public let reason: String

  public init(_ kind: Kind, path: String, reason: String) {
    self.kind = kind
    self.path = path
    self.reason = reason
  }

  public var description: String { "\(path): \(reason); \(remedy)" }

  /// What to do, as a clause.
  public var remedy: String {
    switch kind {
    case .noSpace: "free space on its file system, or raise the quota; writing resumes by itself"
    case .inputOutput:
      "look at the disk, at quotas and limits, and at the system's log; writing resumes by itself when the disk does"
    case .forbidden: "let the user that this runs as read and write the directory and the files in it"
    case .vanished:
      "put the same files back; what the daemon still has is lost when it ends, so save it first (feedclient snapshot FEED)"
    case .exists: "name another one, or move it away"
    case .absent: "name the directory of a state with --state"
    case .newerVersion: "use that version of feedd, or another --state directory"
    case .corrupt:
      "nothing was changed; see what 'feedd --check' finds, and put a backup in its place (without the files -wal and -shm)"
    case .foreign:
      "nothing was changed; put a backup in its place (without the files -wal and -shm), or choose another --state directory"
    case .lost:
      "nothing was changed; put back the files that belong together, or a backup; to go on without what is missing, "
        + "remove \(StateMarkFile.path(of: path)) (a new epoch begins)"
    case .doesNotFit:
      "nothing was changed; keep the files, and put a backup in their place or use another --state directory"
    case .busy: "end the program that holds it; writing resumes by itself"
    case .other: "see what 'feedd --check' finds"
    }
  }
}

extension StorageError {
  init(_ error: SQLiteError, path: String) {
    self.init(
      Self.kind(of: error), path: path, reason: "\(error.message) (SQLite \(error.extended)\(error.systemText))")
  }

  /// Does what SQLite may refuse to do with the file at `path`.
  static func naming<Result>(
    _ path: String, _ body: () throws(SQLiteError) -> Result
  ) throws(StorageError) -> Result {
    do throws(SQLiteError) {
      return try body()
    } catch {
      throw StorageError(error, path: path)
    }
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
