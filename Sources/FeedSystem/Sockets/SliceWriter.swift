import CLinux
import Glibc

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
