import CLinux
import Glibc

/// A small file that is overwritten in place, a few bytes at a time.
public final class RecordFile {
  private let file: Descriptor

  /// Opens the file at `path`, or makes it, for this user only.
  public init(_ path: String) throws(SystemError) {
    let number = retryingInterrupts { clinux_open(path, O_WRONLY | O_CREAT, 0o600) }
    guard number >= 0 else { throw .last("create", path) }
    file = Descriptor(owning: number)
  }

  /// Puts `bytes` at an offset, in one piece for whoever reads the file later, even if this process ends meanwhile.
  /// - Returns: whether all of them were written.
  @discardableResult
  public func write(_ bytes: UnsafeRawBufferPointer, at offset: Int = 0) -> Bool {
    retryingInterrupts { pwrite(file.rawValue, bytes.baseAddress, bytes.count, off_t(offset)) } == bytes.count
  }

  /// Cuts the file off after so many bytes.
  public func truncate(to count: Int) { _ = ftruncate(file.rawValue, off_t(count)) }

  /// Waits until the disk has what was written. Returns whether it does.
  @discardableResult
  public func sync() -> Bool { fsync(file.rawValue) == 0 }
}
