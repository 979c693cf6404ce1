import CLinux
import FeedSystem
import Glibc

/// A pipe. Both ends are closed on exec.
public struct Pipe: ~Copyable {
  /// The reading end; nil after it was closed or moved away.
  public var reading: Descriptor?
  /// The writing end; nil after it was closed or moved away.
  public var writing: Descriptor?

  public init() throws(SystemError) {
    var ends: [Int32] = [-1, -1]
    guard clinux_pipe(&ends) == 0 else { throw SystemError(code: errno, operation: "create a pipe") }
    reading = Descriptor(owning: ends[0])
    writing = Descriptor(owning: ends[1])
  }

  /// The descriptor number of the reading end; -1 after it was closed or moved away.
  public var readingNumber: Int32 { Self.number(reading) }

  /// The descriptor number of the writing end; -1 after it was closed or moved away.
  public var writingNumber: Int32 { Self.number(writing) }

  private static func number(_ end: borrowing Descriptor?) -> Int32 {
    switch end {
    case .some(let descriptor): descriptor.rawValue
    case .none: -1
    }
  }
}
