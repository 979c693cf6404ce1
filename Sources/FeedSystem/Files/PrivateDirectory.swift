import CLinux
import Glibc

/// Directories and files that only their owner can access.
public enum PrivateDirectory {
  /// Creates the directory and its missing parents with mode 0700. Syncs the parent of each new directory, so that it
  /// survives a power failure. Existing directories keep their mode.
  public static func make(_ path: String) throws(SystemError) {
    var status = stat()
    if stat(path, &status) == 0 {
      if status.st_mode & S_IFMT == S_IFDIR { return }
      throw SystemError(code: ENOTDIR, operation: "use directory", path: path)
    }
    let parent = FilePath.directory(of: path)
    if path.hasSuffix("/") { return try make(String(path.dropLast())) }
    if parent != "/" && parent != "." { try make(parent) }
    guard mkdir(path, 0o700) == 0 else {
      let error = SystemError.last("create directory", path)
      if error.code != EEXIST { throw error }
      return
    }
    try sync(parent)
  }

  /// Writes the entries of the directory to the disk, so that files created or renamed in it survive a power failure.
  public static func sync(_ path: String) throws(SystemError) {
    let directory = try open(path)
    // EINVAL: the file system does not support syncing a directory.
    guard fsync(directory.rawValue) == 0 || currentErrno() == EINVAL else { throw .last("sync directory", path) }
  }

  /// Whether only root and the user of this process can rename or replace a file that this process creates in the
  /// directory. The directory and those above it belong to these users, and are sticky if others may write to them.
  public static func protectsNames(_ path: String) -> Bool {
    guard var directory = FilePath.resolved(path) else { return false }
    while true {
      var status = stat()
      guard stat(directory, &status) == 0, status.st_uid == 0 || status.st_uid == geteuid(),
        status.st_mode & 0o022 == 0 || status.st_mode & S_ISVTX != 0
      else { return false }
      if directory == "/" { return true }
      directory = FilePath.directory(of: directory)
    }
  }

  /// Calls `body`, during which new files are accessible to this user only.
  /// - Precondition: no other thread creates files, because the umask belongs to the whole process.
  public static func withPrivateFiles<Result, Failure: Error>(
    _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let mask = umask(0o077)
    defer { umask(mask) }
    return try body()
  }

  fileprivate static func open(_ path: String) throws(SystemError) -> Descriptor {
    return try Descriptor("open directory", path) { clinux_open(path, O_RDONLY | O_DIRECTORY, 0) }
  }
}

/// A lock on a directory itself, held until this value is destroyed. Removing files from the directory does not release it.
public struct DirectoryLock: ~Copyable {
  private let handle: Descriptor

  /// Locks the directory at `path`.
  /// - Returns: nil when another holder has it locked.
  public static func acquire(_ path: String) throws(SystemError) -> DirectoryLock? {
    let handle = try PrivateDirectory.open(path)
    guard retryingInterrupts({ flock(handle.rawValue, LOCK_EX | LOCK_NB) }) == 0 else {
      if currentErrno() == EWOULDBLOCK { return nil }
      throw .last("lock directory", path)
    }
    return DirectoryLock(handle: handle)
  }

  /// Returns the reason why other users control the directory; nil if only root and `uid` do.
  public func exposure(to uid: UInt32) throws(SystemError) -> DirectoryExposure? {
    var status = stat()
    guard fstat(handle.rawValue, &status) == 0 else { throw .last("examine the directory") }
    if status.st_uid != 0 && status.st_uid != uid { return .owned(by: status.st_uid) }
    return status.st_mode & 0o022 != 0 ? .writable(mode: status.st_mode & 0o7777) : nil
  }

  private init(handle: consuming Descriptor) { self.handle = handle }
}

/// The reason why other users control a directory.
public enum DirectoryExposure: Equatable, Sendable {
  case owned(by: UInt32)
  /// The group or all users may write to it.
  case writable(mode: UInt32)
}

/// A lock file, locked and finally removed by this value. It contains the pid of its holder.
public struct FileLock: ~Copyable {
  private let handle: Descriptor
  let path: String

  /// Creates and locks the file at `path`.
  /// - Returns: nil if another process has it locked.
  public static func acquire(_ path: String) throws(SystemError) -> FileLock? {
    while true {
      // Mode 0600, because any process that can open the file can lock it.
      let handle = try Descriptor("create lock file", path) { clinux_open(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0o600) }
      guard retryingInterrupts({ flock(handle.rawValue, LOCK_EX | LOCK_NB) }) == 0 else {
        if currentErrno() == EWOULDBLOCK { return nil }
        throw .last("lock", path)
      }
      // The previous holder may have removed the file after it was opened here. A lock on a removed file has no effect.
      if FileIdentity(of: handle.rawValue) == FileIdentity(at: path) { return FileLock(handle: handle, path: path) }
    }
  }

  private init(handle: consuming Descriptor, path: String) {
    self.handle = handle
    self.path = path
    let text = "\(getpid())\n"
    ftruncate(self.handle.rawValue, 0)
    // The pid is only shown in messages, so failing to write it is not an error.
    _ = Glibc.write(self.handle.rawValue, text, text.utf8.count)
  }

  /// Gives the file to the owner of a directory. Only root may give files away.
  public func give(toOwnerOf directory: String) throws(SystemError) {
    var owner = stat()
    guard stat(directory, &owner) == 0 else { throw .last("examine", directory) }
    guard owner.st_uid == geteuid() || fchown(handle.rawValue, owner.st_uid, owner.st_gid) == 0 else {
      throw .last("give away", path)
    }
  }

  /// Removes the file, unless the path names that of another holder: the directory may have been replaced.
  deinit { if FileIdentity(of: handle.rawValue) == FileIdentity(at: path) { unlink(path) } }

  /// Removes the lock file at `path` if this process holds it, before the process ends without destroying the lock.
  public static func remove(_ path: String) { if holder(path) == getpid() { unlink(path) } }

  /// Returns the pid in the lock file at `path`; nil if there is none.
  public static func holder(_ path: String) -> Int32? {
    guard let bytes = try? SmallFile.read(path, limit: 64) else { return nil }
    return Int32(String(decoding: bytes.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self))
  }
}

/// Copies files into directories that other users may control.
public enum FileCopy {
  private static let chunk = 1 << 20

  /// Copies a file to a new one with mode 0600 at `path`, and syncs it.
  ///
  /// The file gets its name when it is complete. Before that it has no name, so nothing is left if the process is killed; on
  /// file systems without such files it has a random name. Nothing is overwritten. The file is never opened by its name, so a
  /// user who controls the directory can neither read it nor substitute other bytes.
  /// - Parameter isCancelled: called before each part of the file is copied.
  /// - Throws: `EEXIST` if there is a file at `path`; `EINTR` after a cancellation.
  public static func create(
    _ path: String, from source: InputFile, isCancelled: () -> Bool = { false }
  ) throws(SystemError) {
    let unnamed = retryingInterrupts { clinux_create_unnamed(FilePath.directory(of: path), 0o600) }
    if unnamed >= 0 { return try fill(Descriptor(owning: unnamed), path, source, isCancelled) }
    let temporary = try FilePath.temporary(for: path)
    let file = try Descriptor("create", temporary) {
      clinux_open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
    }
    defer { unlink(temporary) }
    try fill(file, path, source, isCancelled)
  }

  /// Gives a file in a directory that no other user controls another name, which it may have in addition to its former one.
  /// Nothing is overwritten.
  ///
  /// The file systems of memory sticks and of many network drives have no hard links. There the file is renamed.
  /// - Throws: `EEXIST` if there is a file at `path`.
  public static func name(_ file: String, _ path: String) throws(SystemError) {
    if link(file, path) == 0 { return }
    let error = SystemError.last("create", path)
    guard [EPERM, EOPNOTSUPP, ENOSYS].contains(error.code) else { throw error }
    guard clinux_rename_new(file, path) == 0 else { throw currentErrno() == EEXIST ? .last("create", path) : error }
  }

  /// Copies the rest of a pipe or file to a new file without a name in `directory`. Returns it, at its beginning.
  /// - Parameter deadline: the time of ``MonotonicClock`` at which to stop reading; nil for no limit.
  /// - Throws: `ETIMEDOUT` at the deadline.
  static func unnamed(
    _ source: Int32, _ name: String, in directory: String, until deadline: UInt64? = nil
  ) throws(SystemError) -> Descriptor {
    var number = retryingInterrupts { clinux_create_unnamed(directory, 0o600) }
    if number < 0 {
      // Not every file system can create a file without a name.
      let temporary = try FilePath.temporary(for: "copy", in: directory)
      number = retryingInterrupts { clinux_open(temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600) }
      guard number >= 0 else { throw .last("create a file in", directory) }
      unlink(temporary)
    }
    let file = Descriptor(owning: number)
    try copy(source, name, to: file.rawValue, "a file in \(directory)", until: deadline) { false }
    lseek(file.rawValue, 0, SEEK_SET)
    return file
  }

  /// Copies the source to a new file, and gives it its name.
  private static func fill(
    _ file: consuming Descriptor, _ path: String, _ source: InputFile, _ isCancelled: () -> Bool
  ) throws(SystemError) {
    try copy(source.descriptor, "the source of \(path)", to: file.rawValue, path, isCancelled)
    guard fsync(file.rawValue) == 0 else { throw .last("sync", path) }
    let opened = "/proc/self/fd/\(file.rawValue)"
    guard linkat(AT_FDCWD, opened, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0 else { throw .last("create", path) }
  }

  private static func copy(
    _ source: Int32, _ name: String, to file: Int32, _ path: String, until deadline: UInt64? = nil,
    _ isCancelled: () -> Bool
  ) throws(SystemError) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: chunk, alignment: 1)
    defer { buffer.deallocate() }
    while true {
      if isCancelled() { throw SystemError(code: EINTR, operation: "write", path: path) }
      let count = try Descriptor.readSome(into: buffer, from: source, until: deadline, "read", name)
      if count == 0 { return }
      try Descriptor.writeAll(UnsafeRawBufferPointer(rebasing: buffer[..<count]), to: file, "write", path)
    }
  }
}

/// Input that can be read several times, from its beginning.
///
/// A regular file is read in place. Input from a pipe or a terminal is first copied to a file without a name: no other
/// process can open it, and the system removes it when this process ends.
public struct RepeatableInput: ~Copyable {
  private let file: Descriptor
  /// The offset of the first byte of the input in the file.
  private let start: Int
  private let name: String

  /// Opens a file, or standard input.
  /// - Parameters:
  ///   - path: nil for standard input, from its current offset.
  ///   - directory: the directory of the copy, if one is needed.
  ///   - deadline: the time of ``MonotonicClock`` at which to stop copying; nil for no limit.
  /// - Throws: `EISDIR` for a directory, `ETIMEDOUT` at the deadline.
  public init(_ path: String?, copyIn directory: String, until deadline: UInt64? = nil) throws(SystemError) {
    name = path ?? "standard input"
    file = try Self.repeatable(Self.open(path), name, directory, deadline)
    start = Int(lseek(file.rawValue, 0, SEEK_CUR))
  }

  /// Returns the descriptor of a regular file, or that of a copy, at the first byte of the input.
  private static func repeatable(
    _ source: consuming Descriptor, _ name: String, _ directory: String, _ deadline: UInt64?
  ) throws(SystemError) -> Descriptor {
    let identity = FileIdentity(of: source.rawValue)
    if identity?.isRegularFile == true { return source }
    guard identity?.isDirectory != true else {
      throw SystemError(code: EISDIR, operation: "read", path: name, advice: "pass a file")
    }
    return try FileCopy.unnamed(source.rawValue, name, in: directory, until: deadline)
  }

  private static func open(_ path: String?) throws(SystemError) -> Descriptor {
    guard let path else { return try Descriptor(duplicating: StandardStreams.input) }
    return try Descriptor("open", path) { clinux_open(path, O_RDONLY | O_NOCTTY, 0) }
  }

  /// Fills `space` with bytes from an offset. Returns their number; 0 at the end.
  public func read(into space: UnsafeMutableRawBufferPointer, at offset: Int) throws(SystemError) -> Int {
    let count = retryingInterrupts { pread(file.rawValue, space.baseAddress, space.count, off_t(start + offset)) }
    guard count >= 0 else { throw .last("read", name) }
    return count
  }
}
