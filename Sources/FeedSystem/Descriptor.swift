import CLinux
import Glibc

/// A file descriptor with one owner, closed when the owner goes.
public struct Descriptor: ~Copyable, Sendable {
  /// The number the kernel knows it by; valid as long as this value lives.
  public let rawValue: Int32

  /// Takes over `rawValue`, which must be open and owned by nobody else.
  public init(owning rawValue: Int32) { self.rawValue = rawValue }

  /// Another number for what is behind `number`, closed on exec.
  public init(duplicating number: Int32) throws(SystemError) {
    let copy = fcntl(number, F_DUPFD_CLOEXEC, 3)
    guard copy >= 0 else { throw .last("duplicate a descriptor") }
    self.init(owning: copy)
  }

  deinit { _ = Glibc.close(rawValue) }

  /// Gives the number to the caller, who closes it from now on.
  public consuming func release() -> Int32 {
    let number = rawValue
    discard self
    return number
  }

  /// Makes reads and writes return at once instead of waiting, or the reverse.
  public func setNonblocking(_ on: Bool) throws(SystemError) {
    guard clinux_set_nonblocking(rawValue, on ? 1 : 0) == 0 else { throw .last("change the mode of a descriptor") }
  }
}
