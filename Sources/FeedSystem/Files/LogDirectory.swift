import CLinux
import CProcessor
import Glibc

/// The files of a directory, as a log uses them. Tests replace it by a disk that fails.
///
/// Threads may call it at the same time for different files.
public protocol LogDirectory: AnyObject, Sendable {
  func names() throws(SystemError) -> [String]
  /// Opens an existing regular file; does not follow a symbolic link.
  func open(_ name: String) throws(SystemError) -> any LogFile
  /// Creates a file, or empties an existing one, and allocates its space, so that writes within `size` need none.
  /// - Parameter isZeroed: whether zeros are written and synced, so that later syncs need not record allocations.
  func create(_ name: String, size: Int, isZeroed: Bool) throws(SystemError) -> any LogFile
  /// Renames a file. Replaces a file with the new name.
  func rename(_ name: String, to other: String) throws(SystemError)
  /// Removes a file. A missing file is no error.
  func remove(_ name: String) throws(SystemError)
  /// Makes the creations, renames and removals so far survive a loss of power.
  func sync() throws(SystemError)
  /// The bytes that this user may still allocate.
  var freeBytes: Int { get }
}

public protocol LogFile: AnyObject, Sendable {
  /// The size in bytes, if the file still has the name by which it was opened; nil if it was removed or replaced.
  func size(named name: String) -> Int?
  /// Writes two pieces one after the other, in one system call. Returns the number of bytes written, which may be less than
  /// asked for.
  func write(
    _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer, at offset: Int
  ) throws(SystemError) -> Int
  /// Reads bytes. Returns their number, which is less than asked for only at the end of the file.
  func read(_ space: UnsafeMutableRawBufferPointer, at offset: Int) throws(SystemError) -> Int
  /// Makes the written bytes survive a loss of power.
  func sync() throws(SystemError)
}

extension LogFile {
  /// Writes all bytes of one piece.
  public func writeAll(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(SystemError) {
    var written = 0
    while written < bytes.count {
      let rest = UnsafeRawBufferPointer(rebasing: bytes[written...])
      written += try write(rest, UnsafeRawBufferPointer(start: nil, count: 0), at: offset + written)
    }
  }

  public func writeZeros(_ range: Range<Int>) throws(SystemError) {
    let zeros = UnsafeMutableRawBufferPointer.allocate(byteCount: min(max(range.count, 1), 64 << 10), alignment: 16)
    defer { zeros.deallocate() }
    zeros.initializeMemory(as: UInt8.self, repeating: 0)
    var place = range.lowerBound
    while place < range.upperBound {
      let count = min(zeros.count, range.upperBound - place)
      try writeAll(UnsafeRawBufferPointer(rebasing: zeros[..<count]), at: place)
      place += count
    }
  }
}

/// A directory of the system.
///
/// If another directory gets its path, nothing is opened, created, renamed or removed there: another daemon may use that one.
public final class SystemDirectory: LogDirectory {
  public let path: String
  /// The directory that had the path at first; nil if there was none.
  private let identity: FileIdentity?
  private let isReadOnly: Bool

  /// - Parameter isReadOnly: whether files are opened for reading only, by a user who need not be able to write them.
  public init(_ path: String, isReadOnly: Bool = false) {
    (self.path, self.isReadOnly) = (path, isReadOnly)
    identity = try? FileIdentity(following: path)
  }

  /// - Throws: `ENOENT` if another directory has the path now.
  private func place(_ name: String) throws(SystemError) -> String {
    if let identity, let present = try? FileIdentity(following: path), present != identity {
      throw SystemError(code: ENOENT, operation: "use", path: path)
    }
    return "\(path)/\(name)"
  }

  public func names() throws(SystemError) -> [String] {
    guard let stream = opendir(path) else { throw .last("list directory", path) }
    defer { closedir(stream) }
    var names: [String] = []
    while true {
      // Only this tells an error from the end. A segment that is not listed would count as missing.
      errno = 0
      guard let entry = readdir(stream) else { break }
      names.append(
        withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) })
    }
    guard currentErrno() == 0 else { throw .last("list directory", path) }
    return names
  }

  public func open(_ name: String) throws(SystemError) -> any LogFile {
    let path = try place(name)
    let access = isReadOnly ? O_RDONLY : O_RDWR
    let number = retryingInterrupts { clinux_open(path, access | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0) }
    guard number >= 0 else { throw .last("open", path) }
    let file = SystemFile(Descriptor(owning: number), path, in: self.path)
    let identity = FileIdentity(of: number)
    guard identity?.isRegularFile == true else {
      throw SystemError(
        code: identity?.isDirectory == true ? EISDIR : EINVAL, operation: "open", path: path,
        advice: "it must be a regular file")
    }
    return file
  }

  public func create(_ name: String, size: Int, isZeroed: Bool) throws(SystemError) -> any LogFile {
    let path = try place(name)
    let number = retryingInterrupts { clinux_open(path, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o600) }
    guard number >= 0 else { throw .last("create", path) }
    let file = SystemFile(Descriptor(owning: number), path, in: self.path)
    do throws(SystemError) {
      // Unlike other calls, it returns its error. Stopping and continuing the process interrupts it.
      var code = EINTR
      while code == EINTR { code = posix_fallocate(number, 0, off_t(size)) }
      guard code == 0 else { throw SystemError(code: code, operation: "allocate \(size) bytes for", path: path) }
      if isZeroed {
        try file.writeZeros(0..<size)
        try file.sync()
      }
    } catch {
      unlink(path)
      throw error
    }
    return file
  }

  public func rename(_ name: String, to other: String) throws(SystemError) {
    let (path, next) = (try place(name), try place(other))
    guard Glibc.rename(path, next) == 0 else { throw .last("rename", path) }
  }

  public func remove(_ name: String) throws(SystemError) {
    let path = try place(name)
    guard unlink(path) == 0 || currentErrno() == ENOENT else { throw .last("remove", path) }
  }

  public func sync() throws(SystemError) { try PrivateDirectory.sync(path) }

  public var freeBytes: Int {
    var status = statvfs()
    guard statvfs(path, &status) == 0 else { return .max }
    // The administrator may use what is reserved, as fallocate does.
    let blocks = geteuid() == 0 ? status.f_bfree : status.f_bavail
    // A file system without a limit of its own may report any number.
    let (bytes, isTooMany) = UInt64(blocks).multipliedReportingOverflow(by: UInt64(status.f_frsize))
    return isTooMany ? .max : Int(clamping: bytes)
  }
}

private final class SystemFile: LogFile, @unchecked Sendable {
  private let file: Descriptor
  private let path: String
  private let directory: String
  private let identity: FileIdentity?
  /// The name of the last look at the size, and its path. Used by one thread at a time.
  private var place = (name: "", path: "")

  init(_ file: consuming Descriptor, _ path: String, in directory: String) {
    identity = FileIdentity(of: file.rawValue)
    self.file = file
    self.path = path
    self.directory = directory
  }

  func size(named name: String) -> Int? {
    var status = stat()
    if place.name != name { place = (name, "\(directory)/\(name)") }
    guard lstat(place.path, &status) == 0, let identity, identity.isFile(of: status) else { return nil }
    return Int(status.st_size)
  }

  func write(
    _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer, at offset: Int
  ) throws(SystemError) -> Int {
    // The system does not write to this memory.
    var pieces = (
      iovec(iov_base: UnsafeMutableRawPointer(mutating: first.baseAddress), iov_len: first.count),
      iovec(iov_base: UnsafeMutableRawPointer(mutating: second.baseAddress), iov_len: second.count)
    )
    let count = withUnsafePointer(to: &pieces) { pieces in
      pieces.withMemoryRebound(to: iovec.self, capacity: 2) { pieces in
        retryingInterrupts { pwritev(file.rawValue, pieces, second.isEmpty ? 1 : 2, off_t(offset)) }
      }
    }
    guard count >= 0 else { throw .last("write to", path) }
    return count
  }

  func read(_ space: UnsafeMutableRawBufferPointer, at offset: Int) throws(SystemError) -> Int {
    try Descriptor.read(file.rawValue, space, at: offset, path)
  }

  func sync() throws(SystemError) { guard fdatasync(file.rawValue) == 0 else { throw .last("sync", path) } }
}

/// A CRC-32C (Castagnoli), the checksum of the log's files. It detects any changed bit.
///
/// Where the processor can multiply without carry, long inputs take a fraction of a cycle a byte. Others take an instruction for
/// eight bytes, or tables.
public enum CRC32C {
  /// Continues the checksum of some bytes, 0 of none, with more bytes. O(n).
  public static func of(_ bytes: UnsafeRawBufferPointer, after crc: UInt32 = 0) -> UInt32 {
    guard bytes.count >= longInput, canMultiply, let start = bytes.baseAddress else {
      return clinux_crc32c(crc, bytes.baseAddress, bytes.count)
    }
    let long = bytes.count & ~15
    return clinux_crc32c(~processor_crc32c(~crc, start, long), start + long, bytes.count - long)
  }

  /// The bytes from which multiplying takes less time.
  private static let longInput = 256
  private static let canMultiply = processor_has_crc32() != 0
}
