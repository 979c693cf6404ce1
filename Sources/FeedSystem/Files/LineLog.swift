import CLinux
import Glibc

/// A file of lines that one process at a time appends to, and now and then replaces as a whole.
///
/// What was appended survives the end of the process and of the machine: each append is synced. A line that an end cut off has no
/// newline, and nothing is appended behind it. Programs that this process starts may keep the file locked until they end; see ``descriptor``.
public final class LineLog {
  /// What a process has to wait for before it may use the file.
  public enum Obstacle: Equatable, Sendable {
    /// Another process uses the file.
    case process(Int32)
    /// A program that an earlier process started has not ended.
    case program
  }

  /// Returns the error for a file that another process uses.
  public static func inUse(_ path: String, by pid: Int32) -> SystemError {
    SystemError(code: EBUSY, operation: "use", path: path, advice: "process \(pid) uses it")
  }

  private static let access = O_RDWR | O_APPEND | O_NONBLOCK | O_NOCTTY

  public let path: String
  private let place: FilePlace
  private var file: Descriptor
  /// The size of the file before a failed write; nil if it ends as the last append left it.
  private var sound: Int?

  /// Opens the file or creates it, and locks it.
  /// - Throws: `ELOOP` for a symbolic link; an error with the advice to wait if it is locked.
  public init(_ path: String, whileLocked: (Obstacle) throws(SystemError) -> Void) throws(SystemError) {
    self.path = path
    place = try FilePlace(path)
    while true {
      file = try place.open(place.name, Self.access | O_CREAT, path)
      if let obstacle = try Self.lock(file.rawValue, path) {
        try whileLocked(obstacle)
      } else if try isCurrent {
        break
      }
    }
  }

  private static func lock(_ descriptor: Int32, _ path: String) throws(SystemError) -> Obstacle? {
    let owner = clinux_claim(descriptor)
    guard owner >= 0 else { throw .last("lock", path) }
    if owner > 0 { return .process(owner) }
    if clinux_share_lock(descriptor) == 0 { return nil }
    guard currentErrno() == EWOULDBLOCK else { throw .last("lock", path) }
    return .program
  }

  /// Whether the locked file is still the one of the path. Another process may have replaced it before it was locked.
  private var isCurrent: Bool {
    get throws(SystemError) {
      var (here, there) = (stat(), stat())
      guard fstat(file.rawValue, &here) == 0 else { throw .last("examine", path) }
      guard here.st_mode & S_IFMT == S_IFREG else {
        throw SystemError(code: EINVAL, operation: "write", path: path, advice: "pass a regular file")
      }
      guard fstatat(place.directory.rawValue, place.name, &there, AT_SYMLINK_NOFOLLOW) == 0 else { return false }
      return here.st_dev == there.st_dev && here.st_ino == there.st_ino
    }
  }

  /// The descriptor of the file. A program that inherits it keeps the file locked until it ends.
  public var descriptor: Int32 { file.rawValue }

  /// Returns the bytes of the file.
  public func read() throws(SystemError) -> [UInt8] {
    var status = stat()
    guard fstat(file.rawValue, &status) == 0 else { throw .last("examine", path) }
    var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
    var filled = 0
    while filled < bytes.count {
      let count = bytes.withUnsafeMutableBytes { space in
        retryingInterrupts {
          pread(file.rawValue, space.baseAddress.map { $0 + filled }, space.count - filled, off_t(filled))
        }
      }
      guard count >= 0 else { throw .last("read", path) }
      if count == 0 { break }
      filled += count
    }
    return Array(bytes[..<filled])
  }

  /// Discards the bytes from `count` on.
  public func truncate(to count: Int) throws(SystemError) {
    guard ftruncate(file.rawValue, off_t(count)) == 0 else { throw .last("truncate", path) }
    sound = nil
  }

  /// Appends bytes. What a failed write left is cut off before more is appended.
  /// - Parameter syncs: whether they must survive the end of the machine.
  public func append(_ bytes: [UInt8], syncs: Bool = true) throws(SystemError) {
    if let sound { try truncate(to: sound) }
    var status = stat()
    guard fstat(file.rawValue, &status) == 0 else { throw .last("examine", path) }
    sound = Int(status.st_size)
    try Descriptor.writeAll(bytes[...], to: file.rawValue, "write", path)
    sound = nil
    if syncs, fdatasync(file.rawValue) != 0 { throw .last("sync", path) }
  }

  public func replace(with bytes: [UInt8]) throws(SystemError) {
    let temporary = "\(place.name).\(try Random.hex128()).new"
    let directory = place.directory.rawValue
    let next = try place.open(temporary, Self.access | O_CREAT | O_EXCL, path)
    do throws(SystemError) {
      guard try Self.lock(next.rawValue, path) == nil else {
        throw SystemError(code: EBUSY, operation: "lock", path: path)
      }
      try Descriptor.writeAll(bytes[...], to: next.rawValue, "write", path)
      guard fsync(next.rawValue) == 0 else { throw SystemError.last("sync", path) }
      guard renameat(directory, temporary, directory, place.name) == 0 else {
        throw SystemError.last("replace", path)
      }
    } catch {
      unlinkat(directory, temporary, 0)
      throw error
    }
    file = next
    sound = nil
    // The directory was opened to name files in it. To sync it, it is opened to be read.
    try? PrivateDirectory.sync(FilePath.directory(of: path))
  }
}
