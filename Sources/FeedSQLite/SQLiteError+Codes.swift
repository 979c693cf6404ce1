import CSQLite
import Glibc

/// The primary result codes that callers tell apart.
extension SQLiteError {
  /// Another connection holds a lock.
  public static let busy = SQLITE_BUSY
  /// The file or its directory may not be written.
  public static let readOnly = SQLITE_READONLY
  /// The system failed to read or write.
  public static let inputOutput = SQLITE_IOERR
  /// The file's content is damaged.
  public static let corrupt = SQLITE_CORRUPT
  /// There is no room: the disk, a quota or the page limit is full.
  public static let full = SQLITE_FULL
  /// The file cannot be opened.
  public static let cannotOpen = SQLITE_CANTOPEN
  /// The file is not a database.
  public static let notADatabase = SQLITE_NOTADB
  /// The statement was interrupted.
  public static let interrupted = SQLITE_INTERRUPT
  /// The program may not read or write it.
  public static let permission = SQLITE_PERM
  /// A constraint of the schema does not hold.
  public static let constraint = SQLITE_CONSTRAINT

  /// Whether there is no room on the disk, in whatever way the system said so.
  public var isFullDisk: Bool {
    code == Self.full || (code == Self.inputOutput && [ENOSPC, EDQUOT, EFBIG].contains(systemCode))
  }
}
