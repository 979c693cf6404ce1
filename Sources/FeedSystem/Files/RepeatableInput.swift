import CLinux
import Glibc

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
    let number = retryingInterrupts { clinux_open(path, O_RDONLY | O_NOCTTY, 0) }
    guard number >= 0 else { throw .last("open", path) }
    return Descriptor(owning: number)
  }

  /// Fills `space` with bytes from an offset. Returns their number; 0 at the end.
  public func read(into space: UnsafeMutableRawBufferPointer, at offset: Int) throws(SystemError) -> Int {
    let count = retryingInterrupts { pread(file.rawValue, space.baseAddress, space.count, off_t(start + offset)) }
    guard count >= 0 else { throw .last("read", name) }
    return count
  }
}
