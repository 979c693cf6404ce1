import CLinux
import Glibc

/// Writes many pieces of memory to a socket in one call; it owns the table that the kernel wants them in.
public struct SliceWriter: ~Copyable {
  /// The pieces to write, in order; the caller fills in the first of them.
  public let slices: UnsafeMutableBufferPointer<UnsafeRawBufferPointer>
  private let vectors: UnsafeMutablePointer<iovec>

  /// - Parameter capacity: the most pieces of one call; the kernel takes 1024.
  public init(capacity: Int = 1024) {
    let capacity = min(max(capacity, 1), 1024)
    slices = .allocate(capacity: capacity)
    slices.initialize(repeating: UnsafeRawBufferPointer(start: nil, count: 0))
    vectors = .allocate(capacity: capacity)
  }

  deinit {
    slices.deallocate()
    vectors.deallocate()
  }

  /// Writes the first `count` slices, as many bytes as the socket takes. Never waits; a peer that is gone is `EPIPE`,
  /// never a signal. O(`count`).
  @inline(__always)
  public func write(_ count: Int, to descriptor: Int32) -> SocketIO.Transfer {
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
