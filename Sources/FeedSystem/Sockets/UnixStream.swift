import CLinux
import Glibc

/// A connected Unix stream socket for clients. Its calls block unless ``setNonblocking(_:)`` is on.
///
/// One thread may read while another writes. The socket is closed when it is deallocated, so the descriptor number is not
/// reused while a thread waits on it. ``shutDown(_:)`` wakes a thread that waits to read.
public final class UnixStream: Sendable {
  private let handle: Descriptor

  /// The descriptor number, for poll. Valid while this object exists.
  public var descriptor: Int32 { handle.rawValue }

  /// Takes ownership of a connected stream socket.
  public init(owning descriptor: consuming Descriptor) { handle = descriptor }

  public enum Direction: Int32, Sendable {
    case reading = 0
    case writing = 1
    case both = 2
  }

  /// Ends one or both directions. A thread that waits to read receives the end of the stream, and so does the peer.
  public func shutDown(_ direction: Direction) { _ = Glibc.shutdown(descriptor, direction.rawValue) }

  /// Makes ``read(into:)`` and ``write(_:)`` return nil instead of waiting, or the reverse.
  public func setNonblocking(_ on: Bool) throws(SystemError) { try handle.setNonblocking(on) }

  /// Returns the credentials of the peer; of a client, those of the process that listens.
  public func peerCredentials() throws(SystemError) -> PeerCredentials { try PeerCredentials(of: descriptor) }

  public func wait(for readiness: Readiness, timeout: Duration? = nil) throws(SystemError) -> Readiness {
    try readiness.wait(on: descriptor, timeout: timeout)
  }
}

extension UnixStream {
  /// Reads the available bytes, at most `buffer.count`.
  /// - Returns: the number of bytes; 0 at the end of the stream; nil if the socket is nonblocking and has none.
  public func read(into buffer: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int? {
    try Self.transferred("read from the socket") { recv(descriptor, buffer.baseAddress, buffer.count, 0) }
  }

  private static func transferred(_ operation: String, _ call: () -> Int) throws(SystemError) -> Int? {
    let count = retryingInterrupts(call)
    if count >= 0 { return count }
    let code = currentErrno()
    if code == EAGAIN || code == EWOULDBLOCK { return nil }
    throw SystemError(code: code, operation: operation)
  }

  /// Writes some of the bytes.
  /// - Returns: the number of bytes written; nil if the socket is nonblocking and accepts none.
  /// - Throws: `EPIPE` if the peer has closed the connection; no signal is sent.
  public func write(_ bytes: UnsafeRawBufferPointer) throws(SystemError) -> Int? {
    try Self.transferred("write to the socket") {
      send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
    }
  }

  /// Writes all of the bytes. Waits for room, also if the socket is nonblocking.
  /// - Parameter timeout: the maximum time without progress, after which `ETIMEDOUT` is thrown; nil for none.
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
  /// - Parameter timeout: the maximum time to wait while the queue of the listener is full; nil for none.
  /// - Throws: `ENOENT` or `ECONNREFUSED` if no process listens on the path, `EACCES` if this user may not connect,
  ///   `ETIMEDOUT` if the queue stayed full.
  public static func connect(path: String, timeout: Duration? = nil) throws(SystemError) -> UnixStream {
    let address = try SocketAddress(path: path)
    let handle = try Descriptor("create a socket for", path) {
      socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    }
    let stream = UnixStream(owning: handle)
    if let timeout { try stream.setSendTimeout(timeout) }
    let result = retryingInterrupts { address.withPointer { Glibc.connect(stream.descriptor, $0, $1) } }
    guard result == 0 else { throw connectError(currentErrno(), path) }
    if timeout != nil { try stream.setSendTimeout(.zero) }
    return stream
  }

  /// Sets the send timeout, which also limits `connect`: it blocks while the queue of the listener is full.
  private func setSendTimeout(_ timeout: Duration) throws(SystemError) {
    let nanoseconds = timeout.clampedNanoseconds
    // Zero means no timeout, so a positive timeout is at least one microsecond.
    let atLeast: UInt64 = timeout > .zero ? 1000 : 0
    let bounded = max(nanoseconds, atLeast)
    var value = timeval(tv_sec: Int(bounded / 1_000_000_000), tv_usec: Int(bounded % 1_000_000_000 / 1000))
    let result = setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &value, socklen_t(MemoryLayout<timeval>.size))
    guard result == 0 else { throw .last("set a time limit on a socket") }
  }

  private static func connectError(_ code: Int32, _ path: String) -> SystemError {
    var error = SystemError(code: code == EAGAIN ? ETIMEDOUT : code, operation: "connect to", path: path)
    // The kernel refuses connections to files and directories as if nobody listened.
    if code == ECONNREFUSED, let file = try? FileIdentity(following: path), !file.isSocket { error.code = ENOTSOCK }
    switch error.code {
    case ENOENT, ECONNREFUSED: error.advice = "start feedd or pass its socket with --socket"
    case EACCES: error.advice = "join the group of the socket"
    case ENOTSOCK, EPROTOTYPE: error.advice = "pass the socket of feedd with --socket"
    case ETIMEDOUT: error.advice = "check that feedd accepts connections"
    default: break
    }
    return error
  }
}

/// The address of a Unix socket for `bind`, `connect` and `sendto`.
struct SocketAddress {
  private var storage = sockaddr_un()
  private let length: socklen_t

  private init(_ name: [UInt8], length: Int) {
    self.length = socklen_t(length)
    storage.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &storage.sun_path) { $0.copyBytes(from: name) }
  }

  /// Creates the address of a path in the file system.
  /// - Throws: `EINVAL` if the path is empty or has a zero byte, `ENAMETOOLONG` if it does not fit.
  init(path: String) throws(SystemError) {
    let name = Array(path.utf8)
    guard !name.isEmpty, !name.contains(0) else {
      throw SystemError(code: EINVAL, operation: "use socket path", path: "'\(path)'", advice: "pass a non-empty path")
    }
    guard name.count <= SocketPath.maximumLength else {
      throw SystemError(
        code: ENAMETOOLONG, operation: "use socket path", path: path,
        advice: "pass a path of at most \(SocketPath.maximumLength) bytes, not \(name.count)")
    }
    self.init(name, length: MemoryLayout<sockaddr_un>.size)
  }

  /// Creates an address from the value of `NOTIFY_SOCKET`: a path, or `@` and a name in the abstract namespace.
  init(notify text: String) throws(SystemError) {
    guard text.utf8.first == UInt8(ascii: "@") else {
      try self.init(path: text)
      return
    }
    var name = Array(text.utf8)
    guard name.count > 1, name.count <= SocketPath.maximumLength + 1 else {
      throw SystemError(code: EINVAL, operation: "use abstract socket name", path: text)
    }
    name[0] = 0
    // The length of the address ends an abstract name; it has no final zero.
    self.init(name, length: MemoryLayout<sa_family_t>.size + name.count)
  }

  /// Calls `body` with the address and its length in the form of the socket calls.
  func withPointer<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
    withUnsafePointer(to: storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, length) }
    }
  }
}

/// The process and user at the other end of a Unix socket, as the kernel recorded them when the peer connected or listened.
public struct PeerCredentials: Equatable, Sendable {
  public var pid: Int32
  public var uid: UInt32
  public var gid: UInt32
  /// The supplementary groups, in the order of the kernel. `gid` may be one of them.
  public var groups: [UInt32]

  public init(pid: Int32, uid: UInt32, gid: UInt32, groups: [UInt32]) {
    (self.pid, self.uid, self.gid, self.groups) = (pid, uid, gid, groups)
  }

  /// Reads the credentials of a connected socket (SO_PEERCRED, SO_PEERGROUPS). The pid is 0 if the peer is in a different
  /// pid namespace.
  public init(of descriptor: Int32) throws(SystemError) {
    var credentials = clinux_credentials()
    guard clinux_peer_credentials(descriptor, &credentials) == 0 else {
      throw .last("read the credentials of the peer")
    }
    self.init(pid: credentials.pid, uid: credentials.uid, gid: credentials.gid, groups: Self.groups(of: descriptor))
  }

  /// The supplementary groups; empty if the kernel does not report them.
  private static func groups(of descriptor: Int32) -> [UInt32] {
    let count = clinux_peer_groups(descriptor, nil, 0)
    guard count > 0 else { return [] }
    return [UInt32](unsafeUninitializedCapacity: Int(count)) { groups, written in
      written = clinux_peer_groups(descriptor, groups.baseAddress, count) == count ? Int(count) : 0
    }
  }
}

/// Looks up users and groups of this machine.
public enum SystemAccounts {
  public static func user(named name: String) -> UInt32? {
    guard !name.utf8.contains(0), let entry = getpwnam(name) else { return nil }
    return entry.pointee.pw_uid
  }

  /// Returns the number of a group and its listed members; nil if there is no such group. Users whose primary group it is
  /// are usually not listed.
  public static func group(named name: String) -> (gid: UInt32, members: [UInt32])? {
    guard !name.utf8.contains(0), let entry = getgrnam(name) else { return nil }
    let gid = entry.pointee.gr_gid
    var names: [String] = []
    var next = entry.pointee.gr_mem
    while let member = next?.pointee {
      names.append(String(cString: member))
      next = next?.successor()
    }
    return (gid, names.compactMap(user(named:)))
  }
}

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
