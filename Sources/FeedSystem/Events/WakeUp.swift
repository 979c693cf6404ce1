import Glibc

/// Wakes a thread that polls, from any other thread: a pipe to itself.
public final class WakeUp: Sendable {
  private let reading: Descriptor
  private let writing: Descriptor

  public init() throws(SystemError) {
    var pipe = try Pipe()
    guard let reading = pipe.reading.take(), let writing = pipe.writing.take() else {
      throw SystemError(code: EBADF, operation: "make a way to wake a thread")
    }
    try reading.setNonblocking(true)
    try writing.setNonblocking(true)
    self.reading = reading
    self.writing = writing
  }

  /// To be polled for reading.
  public var descriptor: Int32 { reading.rawValue }

  /// Makes the descriptor readable until ``clear()``.
  public func signal() {
    var byte: UInt8 = 1
    // A pipe that is full is readable already.
    _ = retryingInterrupts { Glibc.write(writing.rawValue, &byte, 1) }
  }

  /// Forgets every signal so far.
  public func clear() {
    withUnsafeTemporaryAllocation(byteCount: 64, alignment: 1) { space in
      while retryingInterrupts({ Glibc.read(reading.rawValue, space.baseAddress, space.count) }) > 0 {}
    }
  }
}
