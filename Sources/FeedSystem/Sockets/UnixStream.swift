import CLinux
import Glibc

/// A connected Unix stream socket, for clients: it waits where the daemon never does.
///
/// One thread may read while another writes. It is closed when the last reference goes, so a descriptor number is never
/// reused under a thread that still waits on it; ``shutDown(_:)`` is how one thread wakes another.
public final class UnixStream: Sendable {
  private let handle: Descriptor

  /// The number the kernel knows it by, for use in a poll; valid as long as this object lives.
  public var descriptor: Int32 { handle.rawValue }

  /// Takes over a connected stream socket.
  public init(owning descriptor: consuming Descriptor) { handle = descriptor }

  /// Which directions to end.
  public enum Direction: Int32, Sendable {
    case reading = 0
    case writing = 1
    case both = 2
  }

  /// Ends one or both directions: a thread that waits to read sees the end of the stream, and so does the peer.
  public func shutDown(_ direction: Direction) { _ = Glibc.shutdown(descriptor, direction.rawValue) }

  /// Makes ``read(into:)`` and ``write(_:)`` return nil instead of waiting, or the reverse.
  public func setNonblocking(_ on: Bool) throws(SystemError) { try handle.setNonblocking(on) }

  /// Who listens at the other end.
  public func peerCredentials() throws(SystemError) -> PeerCredentials { try PeerCredentials(of: descriptor) }

  /// Waits until it is ready; see ``Readiness/wait(on:timeout:)``.
  public func wait(for readiness: Readiness, timeout: Duration? = nil) throws(SystemError) -> Readiness {
    try readiness.wait(on: descriptor, timeout: timeout)
  }
}

extension UnixStream {
  /// Reads what is there, at least one byte unless the stream has ended.
  /// - Returns: how many bytes; 0 at the end of the stream; nil when it does not block and nothing is there.
  public func read(into buffer: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int? {
    let count = retryingInterrupts { recv(descriptor, buffer.baseAddress, buffer.count, 0) }
    if count >= 0 { return count }
    let code = currentErrno()
    if code == EAGAIN || code == EWOULDBLOCK { return nil }
    throw SystemError(code: code, operation: "read from the socket")
  }

  /// Writes some of the bytes. A peer that is gone is `EPIPE`, never a signal.
  /// - Returns: how many were taken; nil when it does not block and none was.
  public func write(_ bytes: UnsafeRawBufferPointer) throws(SystemError) -> Int? {
    let count = retryingInterrupts { send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL)) }
    if count >= 0 { return count }
    let code = currentErrno()
    if code == EAGAIN || code == EWOULDBLOCK { return nil }
    throw SystemError(code: code, operation: "write to the socket")
  }

  /// Writes all of the bytes, waiting where it must, in either mode.
  /// - Parameter timeout: the longest time without any progress; `ETIMEDOUT` after it. nil waits for ever.
  public func writeAll(_ bytes: UnsafeRawBufferPointer, timeout: Duration? = nil) throws(SystemError) {
    var rest = bytes
    while !rest.isEmpty {
      if timeout != nil, try wait(for: .writable, timeout: timeout).isEmpty {
        throw SystemError(code: ETIMEDOUT, operation: "write to the socket")
      }
      if let count = try write(rest) {
        rest = UnsafeRawBufferPointer(rebasing: rest[count...])
      } else if timeout == nil {
        _ = try wait(for: .writable)
      }
    }
  }
}
