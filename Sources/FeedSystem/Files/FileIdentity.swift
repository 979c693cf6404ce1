import Glibc

/// Which file it is, independent of its name: device and inode.
public struct FileIdentity: Equatable, Sendable {
  let device: UInt
  let inode: UInt
  /// The type bits of the mode (`S_IFMT`).
  private let type: UInt32

  /// The file at `path` without following a symbolic link; nil when it does not exist or cannot be examined.
  public init?(at path: String) {
    var status = stat()
    guard lstat(path, &status) == 0 else { return nil }
    self.init(status)
  }

  /// The file at `path`; symbolic links are followed.
  public init(following path: String) throws(SystemError) {
    var status = stat()
    guard stat(path, &status) == 0 else { throw .last("examine", path) }
    self.init(status)
  }

  /// The file behind an open descriptor.
  public init?(of descriptor: Int32) {
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { return nil }
    self.init(status)
  }

  private init(_ status: stat) {
    device = UInt(status.st_dev)
    inode = UInt(status.st_ino)
    type = status.st_mode & S_IFMT
  }

  public var isRegularFile: Bool { type == S_IFREG }
  public var isDirectory: Bool { type == S_IFDIR }
  public var isSocket: Bool { type == S_IFSOCK }
}
