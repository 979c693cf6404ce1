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

/// The address of a Unix socket, ready for `bind`, `connect` and `sendto`.
struct SocketAddress {
  private var storage = sockaddr_un()
  private let length: socklen_t

  private init(_ name: [UInt8], length: Int) {
    self.length = socklen_t(length)
    storage.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &storage.sun_path) { $0.copyBytes(from: name) }
  }

  /// A path in the file system; a path that is empty, has a zero byte or does not fit is refused.
  init(path: String) throws(SystemError) {
    let name = Array(path.utf8)
    guard !name.isEmpty, !name.contains(0) else {
      throw SystemError(
        code: EINVAL, operation: "use the socket path", path: path, advice: "give a path that is not empty")
    }
    guard name.count <= SocketPath.maximumLength else {
      throw SystemError(
        code: ENAMETOOLONG, operation: "use the socket path", path: path,
        advice: "it has \(name.count) bytes and a socket path has at most \(SocketPath.maximumLength)")
    }
    self.init(name, length: MemoryLayout<sockaddr_un>.size)
  }

  /// A path, or a name of the abstract space when the text starts with `@`, as `NOTIFY_SOCKET` has it.
  init(notify text: String) throws(SystemError) {
    guard text.utf8.first == UInt8(ascii: "@") else {
      try self.init(path: text)
      return
    }
    var name = Array(text.utf8)
    guard name.count > 1, name.count <= SocketPath.maximumLength + 1 else {
      throw SystemError(code: EINVAL, operation: "use the abstract socket name", path: text)
    }
    name[0] = 0
    // An abstract name is as long as the address says: no final zero.
    self.init(name, length: MemoryLayout<sa_family_t>.size + name.count)
  }

  /// Calls `body` with the address as the socket calls want it.
  func withPointer<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
    withUnsafePointer(to: storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, length) }
    }
  }
}
