import CLinux
import Glibc

/// Copies files into directories that other users may control.
public enum FileCopy {
  private static let chunk = 1 << 20

  /// Copies a file to a new one with mode 0600 at `path`, and syncs it.
  ///
  /// The file has its name once it is complete. Before that it has no name, so nothing is left if the process is killed; or,
  /// if the file system cannot do that, a random one. Nothing is overwritten. The file is never opened by its name, so whoever
  /// controls the directory cannot read it or have other bytes under its name.
  /// - Parameter isCancelled: called before each part of the file is copied.
  /// - Throws: `EEXIST` if there is a file at `path`; `EINTR` after a cancellation.
  public static func create(
    _ path: String, from source: InputFile, isCancelled: () -> Bool = { false }
  ) throws(SystemError) {
    let unnamed = retryingInterrupts { clinux_create_unnamed(FilePath.directory(of: path), 0o600) }
    if unnamed >= 0 { return try fill(Descriptor(owning: unnamed), path, source, isCancelled) }
    let temporary = try FilePath.temporary(for: path)
    let number = retryingInterrupts { clinux_open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600) }
    guard number >= 0 else { throw .last("create", temporary) }
    defer { unlink(temporary) }
    try fill(Descriptor(owning: number), path, source, isCancelled)
  }

  /// Copies all that a descriptor gives to a file without a name in `directory`.
  static func unnamed(_ source: Int32, in directory: String) throws(SystemError) -> Descriptor {
    var number = retryingInterrupts { clinux_create_unnamed(directory, 0o600) }
    if number < 0 {
      // Not every file system can create a file without a name.
      let temporary = try FilePath.temporary(for: "copy", in: directory)
      number = retryingInterrupts { clinux_open(temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600) }
      guard number >= 0 else { throw .last("create a file in", directory) }
      unlink(temporary)
    }
    let file = Descriptor(owning: number)
    try copy(source, to: file.rawValue, "a file in \(directory)") { false }
    return file
  }

  /// Copies the source to a new file, and gives it its name.
  private static func fill(
    _ file: consuming Descriptor, _ path: String, _ source: InputFile, _ isCancelled: () -> Bool
  ) throws(SystemError) {
    try copy(source.descriptor, to: file.rawValue, path, isCancelled)
    guard fsync(file.rawValue) == 0 else { throw .last("sync", path) }
    let opened = "/proc/self/fd/\(file.rawValue)"
    guard linkat(AT_FDCWD, opened, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0 else { throw .last("create", path) }
  }

  private static func copy(
    _ source: Int32, to file: Int32, _ path: String, _ isCancelled: () -> Bool
  ) throws(SystemError) {
    var buffer = [UInt8](repeating: 0, count: chunk)
    while true {
      if isCancelled() { throw SystemError(code: EINTR, operation: "write", path: path) }
      let count = buffer.withUnsafeMutableBytes { space in
        retryingInterrupts { read(source, space.baseAddress, space.count) }
      }
      guard count >= 0 else { throw .last("read the source of", path) }
      if count == 0 { return }
      try Descriptor.writeAll(buffer[..<count], to: file, "write", path)
    }
  }
}
