import Glibc

/// Which file it is, whatever it is called.
public struct FileIdentity: Equatable, Sendable {
  let device: UInt
  let node: UInt
  let mode: UInt32

  /// The file at `path`, a symbolic link not followed; nil when there is none or it cannot be looked at.
  init?(at path: String) {
    var status = stat()
    guard lstat(path, &status) == 0 else { return nil }
    self.init(status)
  }

  /// The file at `path`, symbolic links followed.
  public init(following path: String) throws(SystemError) {
    var status = stat()
    guard stat(path, &status) == 0 else { throw .last("look at", path) }
    self.init(status)
  }

  /// The file behind an open descriptor.
  init?(of descriptor: Int32) {
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { return nil }
    self.init(status)
  }

  private init(_ status: stat) {
    device = UInt(status.st_dev)
    node = UInt(status.st_ino)
    mode = status.st_mode
  }

  var isSocket: Bool { mode & S_IFMT == S_IFSOCK }
  var isDirectory: Bool { mode & S_IFMT == S_IFDIR }
}
