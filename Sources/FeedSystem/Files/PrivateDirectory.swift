import CLinux
import Glibc

/// A directory that only its user may enter.
public enum PrivateDirectory {
  /// Makes the directory, and those above it, where they are missing, and syncs the directory that holds each new one, so
  /// that it survives a loss of power. What is there keeps its mode.
  public static func make(_ path: String) throws(SystemError) {
    var status = stat()
    if stat(path, &status) == 0 {
      if status.st_mode & S_IFMT == S_IFDIR { return }
      throw SystemError(code: ENOTDIR, operation: "keep files in", path: path)
    }
    let parent = FilePath.directory(of: path)
    if path.hasSuffix("/") { return try make(String(path.dropLast())) }
    if parent != "/" && parent != "." { try make(parent) }
    guard mkdir(path, 0o700) == 0 else {
      let error = SystemError.last("make the directory", path)
      if error.code != EEXIST { throw error }
      return
    }
    try sync(parent)
  }

  /// Waits until the disk has the directory's own entries: files and directories that were made in it or renamed.
  public static func sync(_ path: String) throws(SystemError) {
    let directory = try open(path)
    // A file system without this operation says EINVAL; it keeps entries in its own way.
    guard fsync(directory.rawValue) == 0 || currentErrno() == EINVAL else { throw .last("sync the directory", path) }
  }

  /// Does something whose new files only this user may read or write. Not to be called while another thread makes files.
  public static func withPrivateFiles<Result, Failure: Error>(
    _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let mask = umask(0o077)
    defer { umask(mask) }
    return try body()
  }

  fileprivate static func open(_ path: String) throws(SystemError) -> Descriptor {
    let number = retryingInterrupts { clinux_open(path, O_RDONLY | O_DIRECTORY, 0) }
    guard number >= 0 else { throw .last("open the directory", path) }
    return Descriptor(owning: number)
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
      throw .last("lock the directory", path)
    }
    return DirectoryLock(handle: handle)
  }

  private init(handle: consuming Descriptor) {
    self.handle = handle
  }
}

/// A lock file held by this process until this value goes; the file goes with it.
public struct FileLock: ~Copyable {
  private let handle: Descriptor
  let path: String

  /// Makes the file at `path` and locks it.
  /// - Returns: nil when another process holds it.
  public static func acquire(_ path: String) throws(SystemError) -> FileLock? {
    while true {
      // Only its owner may open it: a reader could hold the lock as well.
      let number = retryingInterrupts { clinux_open(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0o600) }
      guard number >= 0 else { throw .last("make the lock file", path) }
      let handle = Descriptor(owning: number)
      guard retryingInterrupts({ flock(number, LOCK_EX | LOCK_NB) }) == 0 else {
        if currentErrno() == EWOULDBLOCK { return nil }
        throw .last("lock", path)
      }
      // The former holder may have removed the file between our open and our lock; then the lock means nothing.
      if FileIdentity(of: number) == FileIdentity(at: path) { return FileLock(handle: handle, path: path) }
    }
  }

  private init(handle: consuming Descriptor, path: String) {
    self.handle = handle
    self.path = path
    let text = "\(getpid())\n"
    ftruncate(self.handle.rawValue, 0)
    // Only a hint for whoever finds the file locked: a failure to write it changes nothing.
    _ = Glibc.write(self.handle.rawValue, text, text.utf8.count)
  }

  deinit { unlink(path) }

  /// The process that wrote itself into the lock file at `path`, if one did.
  public static func holder(_ path: String) -> Int32? {
    guard let bytes = try? SmallFile.read(path, limit: 64) else { return nil }
    return Int32(String(decoding: bytes.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self))
  }
}
