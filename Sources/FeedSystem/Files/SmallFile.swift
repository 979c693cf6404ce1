import CLinux
import Glibc

/// Reads and replaces whole files that fit in memory, such as configuration, lock and bookmark files.
public enum SmallFile {
  /// Returns the bytes of the regular file at `path`. Never blocks on a FIFO or a device.
  /// - Parameters:
  ///   - limit: the maximum size of the file in bytes.
  ///   - followsLinks: whether `path` can be a symbolic link.
  /// - Throws: `EISDIR` for a directory, `EINVAL` for any other file that is not regular, `EFBIG` for a larger file,
  ///   `ELOOP` for a link that must not be followed.
  public static func read(
    _ path: String, limit: Int = 16 << 20, followsLinks: Bool = true
  ) throws(SystemError) -> [UInt8] {
    let flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | (followsLinks ? 0 : O_NOFOLLOW)
    let number = retryingInterrupts { clinux_open(path, flags, 0) }
    guard number >= 0 else { throw .last("open", path) }
    let file = Descriptor(owning: number)
    guard let identity = FileIdentity(of: number) else { throw .last("examine", path) }
    guard identity.isRegularFile else {
      throw SystemError(
        code: identity.isDirectory ? EISDIR : EINVAL, operation: "read", path: path, advice: "pass a regular file")
    }
    var contents: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 16 << 10)
    while true {
      let count = chunk.withUnsafeMutableBytes { space in
        retryingInterrupts { Glibc.read(file.rawValue, space.baseAddress, space.count) }
      }
      guard count >= 0 else { throw .last("read", path) }
      if count == 0 { return contents }
      contents += chunk[..<count]
      guard contents.count <= limit else { throw SystemError(code: EFBIG, operation: "read", path: path) }
    }
  }

  /// Replaces or creates the file at `path` atomically: a reader sees the old bytes or the new ones. The new bytes are
  /// written to a temporary file in the same directory, which is then renamed. A symbolic link at `path` is replaced, not
  /// followed.
  /// - Parameters:
  ///   - durable: whether to sync the file and its directory to the disk.
  ///   - isPublic: whether every user may read the file, whatever the umask of the process is.
  public static func replace(
    _ path: String, with contents: [UInt8], durable: Bool = false, isPublic: Bool = false
  ) throws(SystemError) {
    let temporary = "\(path).\(try Random.hex128()).new"
    do throws(SystemError) {
      try write(contents, to: temporary, durable: durable, isPublic: isPublic)
      guard rename(temporary, path) == 0 else { throw SystemError.last("replace", path) }
    } catch {
      if error.code != EEXIST { unlink(temporary) }
      throw error
    }
    if durable { try PrivateDirectory.sync(FilePath.directory(of: path)) }
  }

  /// Checks that ``replace(_:with:durable:isPublic:)`` can create files in the directory of `path`.
  /// - Throws: an error with the path of the directory.
  public static func checkReplaceable(_ path: String) throws(SystemError) {
    let directory = FilePath.directory(of: path)
    guard access(directory, W_OK | X_OK) == 0 else { throw .last("write in", directory) }
  }

  private static func write(
    _ contents: [UInt8], to path: String, durable: Bool, isPublic: Bool
  ) throws(SystemError) {
    let number = retryingInterrupts { clinux_open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o644) }
    guard number >= 0 else { throw .last("create", path) }
    let file = Descriptor(owning: number)
    if isPublic, fchmod(file.rawValue, 0o644) != 0 { throw .last("make readable", path) }
    try Descriptor.writeAll(contents[...], to: file.rawValue, "write", path)
    if durable, fsync(file.rawValue) != 0 { throw .last("sync", path) }
  }
}

/// A small file that is overwritten in place.
public final class RecordFile {
  private let file: Descriptor

  /// Opens the file at `path`, or creates it with mode 0600.
  public init(_ path: String) throws(SystemError) {
    let number = retryingInterrupts { clinux_open(path, O_WRONLY | O_CREAT, 0o600) }
    guard number >= 0 else { throw .last("create", path) }
    file = Descriptor(owning: number)
  }

  /// Writes `bytes` at an offset in one system call, so that the end of this process cannot leave a part of them.
  /// - Returns: whether all bytes were written.
  @discardableResult
  public func write(_ bytes: UnsafeRawBufferPointer, at offset: Int = 0) -> Bool {
    retryingInterrupts { pwrite(file.rawValue, bytes.baseAddress, bytes.count, off_t(offset)) } == bytes.count
  }

  /// Truncates the file to `count` bytes.
  public func truncate(to count: Int) { _ = ftruncate(file.rawValue, off_t(count)) }

  /// Syncs the written bytes to the disk. Returns whether that succeeded.
  @discardableResult
  public func sync() -> Bool { fsync(file.rawValue) == 0 }
}

/// A file that is opened for reading.
public final class InputFile: Sendable {
  private let file: Descriptor

  /// Opens the file at `path`.
  public init(_ path: String) throws(SystemError) {
    let number = retryingInterrupts { clinux_open(path, O_RDONLY | O_NOCTTY, 0) }
    guard number >= 0 else { throw .last("open", path) }
    file = Descriptor(owning: number)
  }

  /// To be read from as long as this object lives.
  public var descriptor: Int32 { file.rawValue }

  /// Fills `space` with bytes from an offset. Returns false if the file has fewer, or cannot be read.
  public func read(_ space: UnsafeMutableRawBufferPointer, at offset: Int) -> Bool {
    retryingInterrupts { pread(file.rawValue, space.baseAddress, space.count, off_t(offset)) } == space.count
  }
}
