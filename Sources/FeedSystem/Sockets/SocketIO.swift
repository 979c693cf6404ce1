import CLinux
import Glibc

/// Nonblocking reads and writes of a socket by its descriptor number.
///
/// They need no object: the daemon stores the number in the state of a connection.
public enum SocketIO {
  /// The outcome of one call.
  @frozen
  public enum Transfer: Equatable, Sendable {
    /// The number of bytes transferred, at least one.
    case bytes(Int)
    /// The end of the stream (reading only).
    case end
    /// No byte can be transferred now.
    case wouldBlock
    /// The connection failed, with this `errno`.
    case failed(Int32)
  }

  /// Reads at most `space.count` bytes. Never blocks.
  /// - Precondition: `space` is not empty.
  @inline(__always)
  public static func read(_ descriptor: Int32, _ space: UnsafeMutableRawBufferPointer) -> Transfer {
    assert(!space.isEmpty, "a read of 0 bytes looks like the end of the stream")
    return transfer(retryingInterrupts { recv(descriptor, space.baseAddress, space.count, Int32(MSG_DONTWAIT)) })
  }

  /// Writes as many of the bytes as the socket accepts. Never blocks. If the peer has closed the connection, the call fails
  /// with `EPIPE` and sends no signal.
  public static func write(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Transfer {
    let flags = Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)
    return transfer(retryingInterrupts { send(descriptor, bytes.baseAddress, bytes.count, flags) })
  }

  /// Sets how many bytes the socket holds that its peer has not read, up to `net.core.wmem_max`. Without effect if the kernel
  /// refuses.
  public static func setSendBuffer(_ descriptor: Int32, _ bytes: Int) {
    var value = Int32(clamping: bytes)
    setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &value, socklen_t(MemoryLayout<Int32>.size))
  }

  /// Closes a descriptor that the caller owns. Errors are ignored: the descriptor is closed in any case.
  public static func close(_ descriptor: Int32) { _ = Glibc.close(descriptor) }

  @inline(__always)
  static func transfer(_ count: Int) -> Transfer {
    if count > 0 { return .bytes(count) }
    if count == 0 { return .end }
    let code = currentErrno()
    return code == EAGAIN || code == EWOULDBLOCK ? .wouldBlock : .failed(code)
  }
}

/// Writes several slices of memory to a socket in one call. It owns the table of slices that the call needs.
public struct SliceWriter: ~Copyable {
  /// The maximum number of slices in one call (IOV_MAX).
  public static let capacity = 1024
  private let vectors: UnsafeMutablePointer<iovec>

  public init() { vectors = .allocate(capacity: Self.capacity) }

  deinit { vectors.deallocate() }

  /// Writes as many bytes of the first ``capacity`` slices as the socket accepts. Never blocks. If the peer has closed the
  /// connection, the call fails with `EPIPE` and sends no signal. O(slices).
  @inline(__always)
  public func write(_ slices: UnsafeBufferPointer<UnsafeRawBufferPointer>, to descriptor: Int32) -> SocketIO.Transfer {
    let count = min(slices.count, Self.capacity)
    for index in 0..<count {
      let slice = slices[index]
      vectors[index] = iovec(iov_base: UnsafeMutableRawPointer(mutating: slice.baseAddress), iov_len: slice.count)
    }
    var message = msghdr()
    message.msg_iov = vectors
    message.msg_iovlen = count
    let flags = Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)
    return SocketIO.transfer(retryingInterrupts { sendmsg(descriptor, &message, flags) })
  }
}
