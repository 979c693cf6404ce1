import CLinux
import Glibc

/// Reads and writes of a socket that does not block, without any object: the daemon's loop keeps the bare descriptor
/// among the rest of a connection's state.
public enum SocketIO {
  /// The outcome of one call.
  @frozen
  public enum Transfer: Equatable, Sendable {
    /// So many bytes, at least one.
    case bytes(Int)
    /// The peer sends no more (reading only).
    case end
    /// Nothing could be transferred now.
    case wouldBlock
    /// The connection is broken; the value of `errno`.
    case failed(Int32)
  }

  /// Reads into `space`, which is not empty.
  @inline(__always)
  public static func read(_ descriptor: Int32, _ space: UnsafeMutableRawBufferPointer) -> Transfer {
    transfer(retryingInterrupts { recv(descriptor, space.baseAddress, space.count, Int32(MSG_DONTWAIT)) })
  }

  /// Writes as many of the bytes as the socket takes. A peer that is gone is `EPIPE`, never a signal.
  public static func write(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Transfer {
    let flags = Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)
    return transfer(retryingInterrupts { send(descriptor, bytes.baseAddress, bytes.count, flags) })
  }

  /// Closes a descriptor that the caller owns.
  public static func close(_ descriptor: Int32) { _ = Glibc.close(descriptor) }

  @inline(__always)
  static func transfer(_ count: Int) -> Transfer {
    if count > 0 { return .bytes(count) }
    if count == 0 { return .end }
    let code = currentErrno()
    return code == EAGAIN || code == EWOULDBLOCK ? .wouldBlock : .failed(code)
  }
}

/// Writes many pieces of memory to a socket in one call. It owns the table in which the kernel wants them.
public struct SliceWriter: ~Copyable {
  /// The most pieces that the kernel takes in one call.
  public static let capacity = 1024
  private let vectors: UnsafeMutablePointer<iovec>

  public init() { vectors = .allocate(capacity: Self.capacity) }

  deinit { vectors.deallocate() }

  /// Writes the slices in order, as many bytes as the socket takes; at most ``capacity`` of them. Never waits. A peer that is
  /// gone is `EPIPE`, never a signal. O(slices).
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
