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
  /// The user that owns it.
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
