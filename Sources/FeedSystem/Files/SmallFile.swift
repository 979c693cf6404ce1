import CLinux
import Glibc

/// Whole files that fit in memory: configuration, lock and bookmark files.
public enum SmallFile {
  /// Returns the bytes of the regular file at `path`. Never blocks on a FIFO or a device: these are refused.
  /// - Parameters:
  ///   - limit: the most bytes to read; a larger file is `EFBIG`.
  ///   - followsLinks: whether `path` may be a symbolic link; otherwise a link is `ELOOP`.
  /// - Throws: `EISDIR` for a directory, `EINVAL` for anything else that is not a regular file.
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
        code: identity.isDirectory ? EISDIR : EINVAL, operation: "read", path: path, advice: "name a regular file")
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

  /// Replaces the file at `path`, or creates it. A reader sees the old bytes or the new ones, never a mixture: the new ones
  /// are written to a file of a random name beside it, which is then renamed. A symbolic link at `path` is replaced, not
  /// followed.
  /// - Parameter durable: whether the bytes and the name are on the disk when this returns.
  public static func replace(_ path: String, with contents: [UInt8], durable: Bool = false) throws(SystemError) {
    let temporary = "\(path).\(try Random.hex128()).new"
    do throws(SystemError) {
      try write(contents, to: temporary, durable: durable)
      guard rename(temporary, path) == 0 else { throw SystemError.last("replace", path) }
    } catch {
      if error.code != EEXIST { unlink(temporary) }
      throw error
    }
    if durable { try PrivateDirectory.sync(FilePath.directory(of: path)) }
  }

  /// Checks that ``replace(_:with:durable:)`` may write beside the file at `path`.
  /// - Throws: an error whose path is that of the directory.
  public static func checkReplaceable(_ path: String) throws(SystemError) {
    let directory = FilePath.directory(of: path)
    guard access(directory, W_OK | X_OK) == 0 else { throw .last("write in", directory) }
  }

  private static func write(_ contents: [UInt8], to path: String, durable: Bool) throws(SystemError) {
    let number = retryingInterrupts { clinux_open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o644) }
    guard number >= 0 else { throw .last("create", path) }
    let file = Descriptor(owning: number)
    var written = 0
    while written < contents.count {
      let count = contents.withUnsafeBytes { bytes in
        retryingInterrupts { Glibc.write(file.rawValue, bytes.baseAddress.map { $0 + written }, bytes.count - written) }
      }
      guard count >= 0 else { throw .last("write", path) }
      written += count
    }
    if durable, fsync(file.rawValue) != 0 { throw .last("sync", path) }
  }
}

/// A small file that is overwritten in place, a few bytes at a time.
public final class RecordFile {
  private let file: Descriptor

  /// Opens the file at `path`, or makes it, for this user only.
  public init(_ path: String) throws(SystemError) {
    let number = retryingInterrupts { clinux_open(path, O_WRONLY | O_CREAT, 0o600) }
    guard number >= 0 else { throw .last("create", path) }
    file = Descriptor(owning: number)
  }

  /// Puts `bytes` at an offset, in one piece for whoever reads the file later, even if this process ends meanwhile.
  /// - Returns: whether all of them were written.
  @discardableResult
  public func write(_ bytes: UnsafeRawBufferPointer, at offset: Int = 0) -> Bool {
    retryingInterrupts { pwrite(file.rawValue, bytes.baseAddress, bytes.count, off_t(offset)) } == bytes.count
  }

  /// Cuts the file off after so many bytes.
  public func truncate(to count: Int) { _ = ftruncate(file.rawValue, off_t(count)) }

  /// Waits until the disk has what was written. Returns whether it does.
  @discardableResult
  public func sync() -> Bool { fsync(file.rawValue) == 0 }
}
