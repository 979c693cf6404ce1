import CLinux
import Glibc

/// Reads and replaces whole files that fit in memory, such as configuration, lock and bookmark files.
public enum SmallFile {
  /// Returns the bytes of the regular file at `path`. Never blocks on a FIFO or a device. Symbolic links are followed.
  /// - Throws: `EISDIR` for a directory, `EINVAL` for any other file that is not regular, `EFBIG` for a larger file.
  public static func read(_ path: String, limit: Int = 16 << 20) throws(SystemError) -> [UInt8] {
    let file = try Descriptor("open", path) { clinux_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0) }
    return try contents(of: file, path, limit)
  }

  /// Replaces or creates the file at `path` atomically; see ``ReplaceableFile/replace(with:isPublic:)``.
  public static func replace(_ path: String, with contents: [UInt8], isPublic: Bool = false) throws(SystemError) {
    try ReplaceableFile(path).replace(with: contents, isPublic: isPublic)
  }

  /// Returns the bytes of a regular file that was opened without blocking.
  fileprivate static func contents(
    of file: consuming Descriptor, _ path: String, _ limit: Int
  ) throws(SystemError) -> [UInt8] {
    guard let identity = FileIdentity(of: file.rawValue) else { throw .last("examine", path) }
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
}

/// The directory of a file, opened once, and the name of the file in it.
struct FilePlace: ~Copyable {
  let name: String
  let directory: Descriptor

  /// Opens the directory of `path`.
  /// - Throws: an error with `path`, also if the directory is not writable. If it is missing, the advice names it.
  init(_ path: String) throws(SystemError) {
    let name = FilePath.name(of: path)
    guard !name.isEmpty else {
      throw SystemError(code: EISDIR, operation: "write", path: path, advice: "pass the path of a file")
    }
    self.init(name: name, directory: try Self.open(FilePath.directory(of: path), path))
  }

  private init(name: String, directory: consuming Descriptor) {
    self.name = name
    self.directory = directory
  }

  private static func open(_ directory: String, _ path: String) throws(SystemError) -> Descriptor {
    let opened = try Descriptor("write", path, advice: { $0 == ENOENT ? "create the directory \(directory)" : nil }) {
      clinux_open_directory(directory)
    }
    guard faccessat(opened.rawValue, ".", W_OK | X_OK, 0) == 0 else { throw .last("write", path) }
    return opened
  }

  /// Makes a new file and gives it the name of the place. Nothing is left of it after an error.
  /// - Parameter fill: writes it, and checks that it may be used.
  func replace(
    _ path: String, create: (_ temporary: String) throws(SystemError) -> Descriptor,
    _ fill: (_ file: Int32) throws(SystemError) -> Void
  ) throws(SystemError) -> Descriptor {
    let temporary = "\(name).\(try Random.hex128()).new"
    let file = try create(temporary)
    do throws(SystemError) {
      try fill(file.rawValue)
      guard renameat(directory.rawValue, temporary, directory.rawValue, name) == 0 else {
        throw SystemError.last("replace", path)
      }
    } catch {
      unlinkat(directory.rawValue, temporary, 0)
      throw error
    }
    return file
  }

  /// Opens a file of the directory, or creates it with mode 0600. Follows no symbolic link.
  func open(_ name: String, _ flags: Int32, _ path: String) throws(SystemError) -> Descriptor {
    let advice = { $0 == ELOOP ? "pass the path of the file that the symbolic link names" : nil }
    return try Descriptor("open", path, advice: advice) {
      clinux_open_at(directory.rawValue, name, flags | O_NOFOLLOW, 0o600)
    }
  }
}

/// A small file that is read once and then replaced again and again.
///
/// Its directory is opened once. All reads and writes stay in that directory, even if another user replaces a directory of the
/// path by another one or by a symbolic link.
public final class ReplaceableFile {
  public let path: String
  private let place: FilePlace

  /// Opens the directory of `path`.
  /// - Throws: an error with `path`, also if the directory is not writable. If it is missing, the advice names it.
  public init(_ path: String) throws(SystemError) {
    self.path = path
    place = try FilePlace(path)
  }

  /// Returns the bytes of the file; nil if there is none.
  /// - Throws: `ELOOP` for a symbolic link, and the errors of ``SmallFile/read(_:limit:)``.
  public func read(limit: Int) throws(SystemError) -> [UInt8]? {
    let file: Descriptor
    do throws(SystemError) {
      file = try place.open(place.name, O_RDONLY | O_NONBLOCK | O_NOCTTY, path)
    } catch {
      if error.code == ENOENT { return nil }
      throw error
    }
    return try SmallFile.contents(of: file, path, limit)
  }

  /// Replaces or creates the file atomically: a reader sees the old bytes or the new ones. The new bytes are written to a
  /// temporary file in the same directory, which is then renamed. A symbolic link is replaced, not followed. A device, a FIFO or
  /// a socket is never replaced, nor a link to one such as `/dev/stdout`: other programs would lose it.
  ///
  /// The new file has the mode of the old one. The first one can be read and written by its owner only.
  /// - Parameter isPublic: whether every user may read the file, whatever the umask of the process is.
  public func replace(with contents: [UInt8], isPublic: Bool = false) throws(SystemError) {
    let directory = place.directory.rawValue
    var status = stat()
    if fstatat(directory, place.name, &status, 0) == 0, status.st_mode & S_IFMT != S_IFREG {
      let isDirectory = status.st_mode & S_IFMT == S_IFDIR
      throw SystemError(
        code: isDirectory ? EISDIR : EINVAL, operation: "write", path: path, advice: "pass a regular file")
    }
    let mode = isPublic ? 0o644 : present
    _ = try place.replace(path) { temporary throws(SystemError) in
      try Descriptor("create a file beside", path) {
        clinux_open_at(directory, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
      }
    } _: { file throws(SystemError) in
      if let mode, fchmod(file, mode) != 0 { throw SystemError.last("change the mode of", path) }
      try Descriptor.writeAll(contents[...], to: file, "write", path)
    }
  }

  /// The mode of the file; nil if there is none.
  private var present: mode_t? {
    var status = stat()
    guard fstatat(place.directory.rawValue, place.name, &status, AT_SYMLINK_NOFOLLOW) == 0,
      status.st_mode & S_IFMT == S_IFREG
    else { return nil }
    return status.st_mode & 0o777
  }
}

/// A small file that is overwritten in place.
public final class RecordFile {
  private let file: Descriptor

  /// Opens the file at `path`, or creates it with mode 0600.
  public init(_ path: String) throws(SystemError) {
    file = try Descriptor("create", path) { clinux_open(path, O_WRONLY | O_CREAT, 0o600) }
  }

  /// Writes `bytes` at an offset in one system call, so that the end of this process cannot leave a part of them. Returns whether all
  /// were written.
  @discardableResult
  public func write(_ bytes: UnsafeRawBufferPointer, at offset: Int = 0) -> Bool {
    retryingInterrupts { pwrite(file.rawValue, bytes.baseAddress, bytes.count, off_t(offset)) } == bytes.count
  }

  public func truncate(to count: Int) { _ = ftruncate(file.rawValue, off_t(count)) }

  /// Syncs the written bytes to the disk. Returns whether that succeeded.
  @discardableResult
  public func sync() -> Bool { fsync(file.rawValue) == 0 }
}

public final class InputFile: Sendable {
  private let file: Descriptor

  public init(_ path: String) throws(SystemError) {
    file = try Descriptor("open", path) { clinux_open(path, O_RDONLY | O_NOCTTY, 0) }
  }

  /// The descriptor to read from, valid while this object exists.
  public var descriptor: Int32 { file.rawValue }

  /// Fills `space` with bytes from an offset. Returns false if the file has fewer, or cannot be read.
  public func read(_ space: UnsafeMutableRawBufferPointer, at offset: Int) -> Bool {
    retryingInterrupts { pread(file.rawValue, space.baseAddress, space.count, off_t(offset)) } == space.count
  }
}

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

  public func read() throws(SystemError) -> [UInt8] {
    var status = stat()
    guard fstat(file.rawValue, &status) == 0 else { throw .last("examine", path) }
    var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
    let filled = try bytes.withUnsafeMutableBufferPointer { space throws(SystemError) in
      try Descriptor.read(file.rawValue, UnsafeMutableRawBufferPointer(space), at: 0, path)
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
    file = try place.replace(path) { temporary throws(SystemError) in
      try place.open(temporary, Self.access | O_CREAT | O_EXCL, path)
    } _: { next throws(SystemError) in
      guard try Self.lock(next, path) == nil else { throw SystemError(code: EBUSY, operation: "lock", path: path) }
      try Descriptor.writeAll(bytes[...], to: next, "write", path)
      guard fsync(next) == 0 else { throw SystemError.last("sync", path) }
    }
    sound = nil
    // The directory was opened to name files in it. To sync it, it is opened to be read.
    try? PrivateDirectory.sync(FilePath.directory(of: path))
  }
}
