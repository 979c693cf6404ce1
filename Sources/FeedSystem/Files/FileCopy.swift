import CLinux
import Glibc

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
  /// - Parameters:
  ///   - source: the descriptor of the pipe or file.
  ///   - name: its name in an error.
  ///   - deadline: the time of ``MonotonicClock`` at which to stop reading; nil for no limit.
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
  /// The name of the input in an error.
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
