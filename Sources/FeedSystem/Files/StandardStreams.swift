import CLinux
import Glibc

/// Plain reads and writes of descriptors that the process was started with, without buffers of their own.
public enum StandardStreams {
  public static let input: Int32 = 0
  public static let output: Int32 = 1
  public static let error: Int32 = 2

  /// Writes all of the bytes, waiting where it must. `EPIPE` says that the reader is gone (ignore SIGPIPE to see it).
  public static func writeAll(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) throws(SystemError) {
    var rest = bytes
    while !rest.isEmpty {
      let count = retryingInterrupts { Glibc.write(descriptor, rest.baseAddress, rest.count) }
      if count >= 0 {
        rest = UnsafeRawBufferPointer(rebasing: rest[count...])
      } else if currentErrno() == EAGAIN {
        // Somebody shares the descriptor and made it nonblocking.
        _ = try Readiness.writable.wait(on: descriptor)
      } else {
        throw .last("write to standard \(descriptor == error ? "error" : "output")")
      }
    }
  }

  /// Writes all of a text; see ``writeAll(_:to:)``.
  public static func writeAll(_ text: String, to descriptor: Int32) throws(SystemError) {
    var text = text
    let result = text.withUTF8 { bytes -> SystemError? in
      do throws(SystemError) {
        try writeAll(UnsafeRawBufferPointer(bytes), to: descriptor)
        return nil
      } catch {
        return error
      }
    }
    if let result { throw result }
  }

  /// Reads what is there, waiting for at least one byte; 0 at the end.
  public static func read(
    into buffer: UnsafeMutableRawBufferPointer, from descriptor: Int32 = input
  ) throws(SystemError) -> Int {
    while true {
      let count = retryingInterrupts { Glibc.read(descriptor, buffer.baseAddress, buffer.count) }
      if count >= 0 { return count }
      guard currentErrno() == EAGAIN else { throw .last("read from standard input") }
      _ = try Readiness.readable.wait(on: descriptor)
    }
  }

  /// Makes a write to a closed pipe fail with `EPIPE` instead of killing the process.
  public static func ignoreBrokenPipes() { signal(SIGPIPE, SIG_IGN) }
}
