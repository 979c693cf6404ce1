import FeedSQLite
import FeedSystem
import Glibc

/// Copies a state, even while the daemon writes to it, into one file: the image, and the segments of the log in a table.
public enum StateBackup {
  /// Copies the state in a directory, at one revision, to a new file. The copy is marked as a backup. A daemon that opens it
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
    _ state: String, to copy: String, isCancelled: @escaping () -> Bool = { false }
  ) throws(StorageError) {
    let directory = FilePath.directory(of: copy)
    if PrivateDirectory.protectsNames(directory) {
      return try self.copy(state, to: copy, by: directory, isCancelled)
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
    let temporary = try StorageError.ofSystem(path: copy, try FilePath.temporary(for: copy, in: staging))
    defer { unlink(temporary) }
    try self.copy(state, to: temporary, by: staging, isCancelled)
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
    _ state: String, to copy: String, by directory: String, _ isCancelled: @escaping () -> Bool
  ) throws(StorageError) {
    try check(copy)
    let temporary = try StorageError.ofSystem(
      .forbidden, path: copy, try FilePath.temporary(for: copy, in: FilePath.resolved(directory) ?? directory))
    defer { discard(temporary) }
    try create(temporary, for: copy)
    try copyState(state, to: temporary, for: copy, isCancelled)
    try complete(temporary, for: copy, isCancelled)
    do throws(SystemError) {
      try FileCopy.name(temporary, copy)
    } catch {
      throw error.code == EEXIST ? exists(copy) : StorageError(.inputOutput, path: copy, reason: "\(error)")
    }
    try? PrivateDirectory.sync(directory)
  }

  /// Marks a copy as a backup and syncs it.
  private static func complete(_ file: String, for copy: String, _ isCancelled: () -> Bool) throws(StorageError) {
    try StorageError.naming(copy) { () throws(SQLiteError) in
      let made = try Database(path: file, access: .readWrite)
      try made.execute("PRAGMA journal_mode = DELETE; INSERT OR REPLACE INTO meta VALUES ('backup', 1)")
      made.syncFile()
    }
    if isCancelled() { throw StorageError(.other, path: copy, reason: "the copy was cancelled") }
  }

  /// Removes a copy that is not complete, with the files that SQLite made beside it.
  private static func discard(_ file: String) {
    for end in ["", "-wal", "-journal", "-shm"] { unlink(file + end) }
  }

  /// Copies the content of a database into an empty file.
  private static func vacuum(
    _ database: Database, into file: String, for copy: String, _ isCancelled: @escaping () -> Bool
  ) throws(StorageError) {
    try StorageError.naming(copy) { () throws(SQLiteError) in
      database.interrupt(when: isCancelled)
      // VACUUM INTO accepts an existing empty file. This one was created just before.
      try database.prepare("VACUUM INTO ?", isKept: false).run(file)
    }
  }

  /// Copies the image and the segments of a directory into an empty file.
  private static func copyState(
    _ directory: String, to file: String, for copy: String, _ isCancelled: @escaping () -> Bool
  ) throws(StorageError) {
    let files = SystemDirectory(directory, isReadOnly: true)
    // A member of a group may write its first image meanwhile.
    var image: Database?
    let found = try LiveState.read(directory, unless: isCancelled) {
      () throws(StorageError) -> (StoredState, [(segment: SegmentChain.Segment, count: Int)])? in
      image = try imageOfGroup(in: directory)
      if image != nil { return nil }
      let state = try StoredState(directory, files, access: .locked, boot: BootIdentity.current)
      return (state, try state.chain.readLog(in: directory, boot: state.boot))
    }
    if let image { try vacuum(image, into: file, for: copy, isCancelled) }
    guard let (state, log) = found else {
      return try StorageError.naming(copy) { () throws(SQLiteError) in
        try ImageNote.remove(from: Database(path: file, access: .readWrite))
      }
    }
    if state.database == nil && log.isEmpty { throw .absent(directory) }
    if let database = state.database { try vacuum(database, into: file, for: copy, isCancelled) }
    if state.journal != nil { return }
    let made = try StorageError.naming(copy) { () throws(SQLiteError) in
      let made = try Database(path: file, access: .readWrite)
      if state.database == nil {
        try ImageFile.makeTables(made, StateFacts(epoch: state.epoch ?? "", software: state.software ?? ""))
      } else {
        try made.execute("BEGIN")
      }
      return made
    }
    for (segment, count) in log { try add(segment, count, of: directory, to: made, for: copy) }
    try StorageError.naming(copy) { () throws(SQLiteError) in try made.execute("COMMIT") }
  }

  /// The image in a directory if its log is elsewhere: that of a member of a group.
  static func imageOfGroup(in directory: String) throws(StorageError) -> Database? {
    guard let (database, version) = try StateFile.open(StateFile.path(in: directory)), version > Schema.lastWithJournal,
      try StorageError.naming(database.path, { () throws(SQLiteError) in try ImageNote.exists(in: database) })
    else { return nil }
    return database
  }

  /// Adds the first bytes of a segment to a copy. Only one segment at a time is in memory: the log may be as long as the image.
  private static func add(
    _ segment: SegmentChain.Segment, _ count: Int, of directory: String, to database: Database, for copy: String
  ) throws(StorageError) {
    let bytes = try StorageError.ofFile("\(directory)/\(segment.name)", try segment.load())
    defer { withExtendedLifetime(bytes) {} }
    try StorageError.naming(copy) { () throws(SQLiteError) in
      let insert = try database.prepare("INSERT OR REPLACE INTO log VALUES (?, ?)", isKept: false)
      try insert.run(Int64(segment.header.number), Lent.blob(UnsafeRawBufferPointer(rebasing: bytes.bytes[..<count])))
    }
  }

  /// Creates an empty file.
  private static func create(_ path: String, for copy: String) throws(StorageError) {
    let number = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard number >= 0 else {
      throw StorageError(.forbidden, path: copy, reason: "\(SystemError(code: errno, operation: "create", path: path))")
    }
    close(number)
  }
}

extension StateBackup {
  /// Verifies `copy` and copies it to the state of `directory`, which no daemon may use. `copy` is not changed.
  /// - Parameters:
  ///   - replaces: whether an existing state may be replaced.
  ///   - isCancelled: called often. When it returns true before the state is replaced, nothing is changed.
  public static func restore(
    _ copy: String, to directory: String, replacing replaces: Bool, isCancelled: @escaping () -> Bool = { false }
  ) throws(StorageError) {
    let path = StateFile.path(in: directory)
    let (database, version) = try openBackup(copy)
    database.interrupt(when: isCancelled)
    try verify(database, version: version)
    let lock = try lock(directory)
    let files = SystemDirectory(directory)
    let segments = ((try? files.names()) ?? []).filter { SegmentHeader.number(in: $0) != nil }
    guard replaces || FilePath.size(of: path) == nil && segments.isEmpty else {
      throw StorageError(.occupied, path: path, reason: "there is a state already")
    }
    // If this process is killed, the next start removes the file under this name.
    let fresh = "\(FilePath.resolved(directory) ?? directory)/\(StateFile.freshName)"
    discard(fresh)
    do throws(StorageError) {
      try create(fresh, for: path)
      try vacuum(database, into: fresh, for: path, isCancelled)
      try complete(fresh, for: path, isCancelled)
      try put(fresh, at: path, in: directory)
    } catch {
      discard(fresh)
      throw error
    }
    // A start ignores them, because the file is marked as a backup.
    for name in segments + SpareSegments.names { try? files.remove(name) }
    _ = consume lock
  }

  /// Opens a backup. Refuses a file that is none, with advice about backups and not about a state.
  private static func openBackup(_ copy: String) throws(StorageError) -> (Database, version: Int64) {
    func refuse(_ reason: String) -> StorageError { StorageError(.badBackup, path: copy, reason: reason) }
    guard let size = FilePath.size(of: copy) else { throw .absent(copy) }
    if (try? FileIdentity(following: copy))?.isDirectory == true { throw refuse("this is no backup but a directory") }
    do throws(StorageError) {
      if size > 0, let (database, version) = try StateFile.open(copy), version > 0 { return (database, version) }
    } catch {
      switch error.kind {
      case .corrupt: throw refuse("the backup is damaged: \(error.reason)")
      case .foreign: throw refuse("this is no backup: \(error.reason)")
      default: throw error
      }
    }
    throw refuse("this is no backup: the file is empty")
  }

  /// Verifies the image and the log of a backup, so that a damaged one replaces nothing.
  private static func verify(_ database: Database, version: Int64) throws(StorageError) {
    let path = database.path
    do throws(StorageError) {
      _ = try StateFacts(database, version: version)
      try ImageCheck.verify(database, version: version)
      _ = try SegmentChain(ofBackup: database, in: path).readLog(in: path, boot: "")
    } catch {
      guard [.corrupt, .brokenLog, .lost].contains(error.kind) else { throw error }
      throw StorageError(.badBackup, path: path, reason: "the backup is damaged: \(error.reason)")
    }
  }

  /// The locks that a daemon holds on its directory.
  private struct Lock: ~Copyable {
    let directory: DirectoryLock
    let file: FileLock
  }

  /// Creates the directory if needed, and locks it as a daemon does.
  private static func lock(_ directory: String) throws(StorageError) -> Lock {
    let lockPath = "\(directory)/feedd.lock"
    do throws(SystemError) {
      try PrivateDirectory.make(directory)
      if let lock = try DirectoryLock.acquire(directory), let file = try FileLock.acquire(lockPath) {
        // If this process is killed, the daemon's user must still be able to lock the file.
        try file.give(toOwnerOf: directory)
        return Lock(directory: lock, file: file)
      }
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
    if owner.st_uid != geteuid(), lchown(fresh, owner.st_uid, owner.st_gid) != 0 { throw refuse("give away") }
    // Older schemas had a WAL and a mark. They belong to the database that is replaced.
    for other in ["\(path)-wal", "\(path)-shm", StateMark.path(of: path)]
    where unlink(other) != 0 && errno != ENOENT {
      throw refuse("remove what belongs to")
    }
    guard rename(fresh, path) == 0 else { throw refuse("replace") }
    try StorageError.ofSystem(.inputOutput, path: path, try PrivateDirectory.sync(directory))
  }
}
