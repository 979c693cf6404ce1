import CLinux
import Glibc

/// Input that can be read several times, from its beginning.
///
/// A regular file is read in its place. What a pipe or a terminal gives is copied to a file first. That file has no name, so
/// nobody else can open it, and nothing of it is left when the process ends.
public struct RepeatableInput: ~Copyable {
  private let file: Descriptor
  /// The offset of the first byte of the input in the file.
  private let start: Int

  /// Opens a file, or standard input.
  /// - Parameters:
  ///   - path: nil for standard input, from its present offset.
  ///   - directory: the directory of the copy, if one is needed.
  public init(_ path: String?, copyIn directory: String) throws(SystemError) {
    let source = try Self.open(path)
    file = try Self.repeatable(source, directory)
    start = max(0, lseek(file.rawValue, 0, SEEK_CUR))
  }

  /// Returns the descriptor of the regular file itself, or of a copy, at the offset of the first byte of the input.
  private static func repeatable(_ source: borrowing Descriptor, _ directory: String) throws(SystemError) -> Descriptor
  {
    guard FileIdentity(of: source.rawValue)?.isRegularFile != true else {
      return try Descriptor(duplicating: source.rawValue)
    }
    let copy = try FileCopy.unnamed(source.rawValue, in: directory)
    lseek(copy.rawValue, 0, SEEK_SET)
    return copy
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
    guard count >= 0 else { throw .last("read the input") }
    return count
  }
}
