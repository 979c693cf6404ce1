import CLinux
import Glibc

extension UnixStream {
  /// Connects to the socket at `path`.
  ///
  /// `ENOENT` and `ECONNREFUSED` mean that nobody listens there, `EACCES` that this user may not connect, `ETIMEDOUT` that
  /// the listener's queue stayed full.
  /// - Parameter timeout: the longest wait for a listener whose queue is full; nil waits for ever.
  public static func connect(path: String, timeout: Duration? = nil) throws(SystemError) -> UnixStream {
    let address = try SocketAddress(path: path)
    let number = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard number >= 0 else { throw .last("make a socket for", path) }
    let stream = UnixStream(owning: Descriptor(owning: number))
    if let timeout { try stream.setSendTimeout(timeout) }
    let result = retryingInterrupts { address.withPointer { Glibc.connect(number, $0, $1) } }
    guard result == 0 else { throw connectError(currentErrno(), path) }
    if timeout != nil { try stream.setSendTimeout(.zero) }
    return stream
  }

  /// A Unix socket has no connection under way: a full queue is waited for inside `connect`, as long as this allows.
  private func setSendTimeout(_ timeout: Duration) throws(SystemError) {
    let nanoseconds = timeout.clampedNanoseconds
    // Zero would mean for ever, which only the caller who resets it wants.
    let atLeast: UInt64 = timeout > .zero ? 1000 : 0
    let bounded = max(nanoseconds, atLeast)
    var value = timeval(
      tv_sec: Int(bounded / 1_000_000_000), tv_usec: Int(bounded % 1_000_000_000 / 1000))
    let result = setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &value, socklen_t(MemoryLayout<timeval>.size))
    guard result == 0 else { throw .last("set a time limit on a socket") }
  }

  private static func connectError(_ code: Int32, _ path: String) -> SystemError {
    var error = SystemError(code: code == EAGAIN ? ETIMEDOUT : code, operation: "connect to", path: path)
    switch error.code {
    case ENOENT, ECONNREFUSED: error.advice = "no feedd listens there: start it, or name its socket with --socket"
    case EACCES: error.advice = "the socket is not open to this user: join its group"
    case ENOTSOCK, EPROTOTYPE: error.advice = "it is not a stream socket: name the socket of feedd with --socket"
    case ETIMEDOUT: error.advice = "feedd is not accepting connections"
    default: break
    }
    return error
  }
}
