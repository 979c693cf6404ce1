import FeedSQLite
import FeedSystem
import Glibc

/// Copies a database file, even while the daemon writes to it.
public enum StateBackup {
  /// Copies the state at `path`, at one revision, to a new file. The copy is marked as a backup. A daemon that opens it
  /// begins a new epoch, because watchers may know revisions that the copy does not have.
  ///
  /// The copy is written under a random name in the same directory, and gets its final name when it is complete and
  /// synced. Nothing is overwritten, and no symbolic link is followed. Requires permission to read the state directory.
  ///
  /// SQLite opens files by their names. Another user who may replace files in the directory could put a file under the
  /// random name and read the state. For such a directory the copy is first made in `/var/tmp`.
  /// - Parameter isCancelled: called often. When it returns true, the copy is abandoned and its files are removed.
  /// - Throws: also if `copy` exists.
  public static func copy(
    _ path: String, to copy: String, isCancelled: @escaping () -> Bool = { false }
  ) throws(StorageError) {
    let directory = FilePath.directory(of: copy)
    if PrivateDirectory.protectsNames(directory) {
      return try self.copy(path, to: copy, by: directory, isCancelled)
    }
    try check(copy)
    do throws(SystemError) {
      // Fails before the long copy, not after it.
      _ = try ReplaceableFile(copy)
    } catch {
      throw StorageError(error.isMissing ? .noDirectory : .forbidden, path: copy, reason: error.reason)
    }
    guard PrivateDirectory.protectsNames(staging) else {
      throw StorageError(
        .forbidden, path: copy, reason: "other users control its directory, and \(staging) is not safe either")
    }
    let temporary: String
    do throws(SystemError) {
      temporary = try FilePath.temporary(for: copy, in: staging)
    } catch {
      throw StorageError(.other, path: copy, reason: "\(error)")
    }
    defer { unlink(temporary) }
    try self.copy(path, to: temporary, by: staging, isCancelled)
    do throws(SystemError) {
      try FileCopy.create(copy, from: InputFile(temporary), isCancelled: isCancelled)
    } catch {
      throw error.code == EEXIST ? exists(copy) : StorageError(.inputOutput, path: copy, reason: "\(error)")
    }
    try? PrivateDirectory.sync(directory)
  }

  /// The directory for copies that cannot be made in their final directory.
  private static let staging = "/var/tmp"

  private static func check(_ copy: String) throws(StorageError) {
    var status = stat()
    guard lstat(copy, &status) != 0 else { throw exists(copy) }
  }

  private static func exists(_ copy: String) -> StorageError {
    StorageError(.exists, path: copy, reason: "the file exists")
  }

  /// - Parameter directory: that of `copy`, in which no other user can replace the file while SQLite writes it.
  private static func copy(
    _ path: String, to copy: String, by directory: String, _ isCancelled: @escaping () -> Bool
  ) throws(StorageError) {
    try check(copy)
    let source = try StateFile.openToRead(path).database
    let temporary = try newFile(in: FilePath.resolved(directory) ?? directory, for: copy)
    defer { for end in ["", "-wal", "-journal", "-shm"] { unlink(temporary + end) } }
    try StorageError.naming(copy) { () throws(SQLiteError) in
      source.interrupt(when: isCancelled)
      // VACUUM INTO accepts an existing empty file. This one was created just before.
      let copying = try source.prepare("VACUUM INTO ?", isKept: false)
      try copying.bind(temporary, at: 1)
      try copying.run()
      let made = try Database(path: temporary, access: .readWrite)
      try made.execute("PRAGMA journal_mode = DELETE; INSERT OR REPLACE INTO meta VALUES ('backup', 1)")
      made.syncFile()
    }
    if isCancelled() { throw StorageError(.other, path: copy, reason: "the copy was cancelled") }
    // link(2) creates the name or fails; unlike rename(2) it replaces nothing.
    guard link(temporary, copy) == 0 else {
      throw errno == EEXIST
        ? exists(copy)
        : StorageError(.inputOutput, path: copy, reason: "cannot create the file: \(String(cString: strerror(errno)))")
    }
    try? PrivateDirectory.sync(directory)
  }

  /// Creates an empty file with an unguessable name in a directory.
  private static func newFile(in directory: String, for copy: String) throws(StorageError) -> String {
    do throws(SystemError) {
      let path = try FilePath.temporary(for: copy, in: directory)
      let number = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
      guard number >= 0 else { throw SystemError(code: errno, operation: "create", path: path) }
      close(number)
      return path
    } catch {
      throw StorageError(.forbidden, path: copy, reason: "\(error)")
    }
  }
}

extension StateBackup {
  /// Copies `copy` to the state of `directory`, which no daemon may use. `copy` is not changed.
  /// - Parameters:
  ///   - replaces: whether an existing state may be replaced.
  ///   - isCancelled: called often. When it returns true before the state is replaced, nothing is changed.
  public static func restore(
    _ copy: String, to directory: String, replacing replaces: Bool, isCancelled: @escaping () -> Bool = { false }
  ) throws(StorageError) {
    let path = "\(directory)/\(StateFile.name)"
    _ = try StateFile.openToRead(copy)
    let lock = try lock(directory)
    guard replaces || FileSize.of(path) == nil else {
      throw StorageError(.occupied, path: path, reason: "there is a state already")
    }
    let fresh = "\(path).new"
    unlink(fresh)
    do throws(StorageError) {
      try Self.copy(copy, to: fresh, by: directory, isCancelled)
      try put(fresh, at: path, in: directory)
    } catch {
      unlink(fresh)
      throw error
    }
    _ = consume lock
  }

  /// Creates the directory if needed, and locks it.
  private static func lock(_ directory: String) throws(StorageError) -> FileLock {
    let lockPath = "\(directory)/feedd.lock"
    do throws(SystemError) {
      try PrivateDirectory.make(directory)
      if let lock = try FileLock.acquire(lockPath) { return lock }
    } catch {
      throw StorageError(.forbidden, path: directory, reason: "\(error)")
    }
    let holder = FileLock.holder(lockPath).map { ", process \($0)" } ?? ""
    throw StorageError(.inUse, path: directory, reason: "a daemon uses it\(holder)")
  }

  /// Replaces a database by another one with the same owner.
  private static func put(_ fresh: String, at path: String, in directory: String) throws(StorageError) {
    func refuse(_ what: String) -> StorageError {
      StorageError(.forbidden, path: path, reason: "\(SystemError(code: errno, operation: what, path: path))")
    }
    var owner = stat()
    if stat(path, &owner) != 0, stat(directory, &owner) != 0 { throw refuse("examine") }
    if owner.st_uid != geteuid(), chown(fresh, owner.st_uid, owner.st_gid) != 0 { throw refuse("give away") }
    // The WAL and the mark belong to the database that is replaced, which is valid without them.
    for other in ["\(path)-wal", "\(path)-shm", StateMarkFile.path(of: path)]
    where unlink(other) != 0 && errno != ENOENT {
      throw refuse("remove what belongs to")
    }
    guard rename(fresh, path) == 0 else { throw refuse("replace") }
    do throws(SystemError) {
      try PrivateDirectory.sync(directory)
    } catch {
      throw StorageError(.inputOutput, path: path, reason: "\(error)")
    }
  }
}
