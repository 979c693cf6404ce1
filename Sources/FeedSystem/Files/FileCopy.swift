import CLinux
import Glibc

/// Copies files into directories that other users may control.
public enum FileCopy {
  private static let chunk = 1 << 20

  /// Copies a file to a new one with mode 0600 at `path`, and syncs it.
  ///
  /// The file has its name once it is complete. Nothing is overwritten. The file is created without following a link and never
  /// opened again by its name, so whoever controls the directory cannot read it or have other bytes under its name.
  /// - Throws: `EEXIST` if there is a file at `path`.
  public static func create(_ path: String, from source: InputFile) throws(SystemError) {
    let temporary = "\(FilePath.directory(of: path))/.\(FilePath.name(of: path)).\(try Random.hex128())"
    let number = retryingInterrupts { clinux_open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600) }
    guard number >= 0 else { throw .last("create", temporary) }
    let file = Descriptor(owning: number)
    defer { unlink(temporary) }
    try copy(source.descriptor, to: file.rawValue, path)
    guard fsync(file.rawValue) == 0 else { throw .last("sync", path) }
    let opened = "/proc/self/fd/\(file.rawValue)"
    guard linkat(AT_FDCWD, opened, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0 else { throw .last("create", path) }
  }

  private static func copy(_ source: Int32, to file: Int32, _ path: String) throws(SystemError) {
    var buffer = [UInt8](repeating: 0, count: chunk)
    while true {
      let count = buffer.withUnsafeMutableBytes { space in
        retryingInterrupts { read(source, space.baseAddress, space.count) }
      }
      guard count >= 0 else { throw .last("read the source of", path) }
      if count == 0 { return }
      var written = 0
      while written < count {
        let more = buffer.withUnsafeBytes { bytes in
          retryingInterrupts { write(file, bytes.baseAddress.map { $0 + written }, count - written) }
        }
        guard more >= 0 else { throw .last("write", path) }
        written += more
      }
    }
  }
}
