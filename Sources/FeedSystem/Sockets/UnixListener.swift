import CLinux
import Glibc

/// A listening Unix stream socket, created here or passed by the service manager.
///
/// It is closed when it is deallocated. A socket that was created here is then removed from the file system.
public final class UnixListener {
  private let handle: Descriptor
  /// The path that clients connect to; empty if the socket was passed without one.
  public let path: String
  /// Whether the service manager created the socket. It keeps the socket when this process ends.
  public let isInherited: Bool
  private let lock: FileLock?
  private let identity: FileIdentity?

  init(handle: consuming Descriptor, path: String, lock: consuming FileLock?, identity: FileIdentity?) {
    self.handle = handle
    self.path = path
    self.identity = identity
    isInherited = identity == nil
    self.lock = lock
  }

  /// Removes the socket if this process created it and the path still refers to it.
  deinit { if let identity, FileIdentity(at: path) == identity { unlink(path) } }

  /// Removes the files of a socket that ``bind(path:mode:group:)`` created, before the process ends without deallocating it.
  public static func remove(_ path: String) {
    unlink(path)
    FileLock.remove(lockPath(path))
  }

  private static func lockPath(_ path: String) -> String { "\(path).lock" }

  /// The descriptor to poll. It is readable while a connection waits to be accepted.
  public var descriptor: Int32 { handle.rawValue }
}

extension UnixListener {
  public enum Accepted: Equatable, Sendable {
    /// A connection. Its descriptor is nonblocking and closed on exec, and the caller owns it.
    case connection(Int32)
    case none
    /// This connection failed before it was accepted. The next one may succeed.
    case retry
    /// The process or the system has no descriptors or memory left. The connection still waits.
    case exhausted(SystemError)
    case failed(SystemError)
  }

  /// Accepts the next connection. Never blocks.
  public func accept() -> Accepted {
    let number = clinux_accept(descriptor)
    if number >= 0 { return .connection(number) }
    let error = SystemError.last("accept a connection on", path)
    switch error.code {
    case EAGAIN: return .none
    case EINTR, ECONNABORTED, EPERM, EPROTO: return .retry
    case EMFILE, ENFILE, ENOBUFS, ENOMEM: return .exhausted(error)
    default: return .failed(error)
    }
  }
}

extension UnixListener {
  /// The maximum number of connections that wait to be accepted. The kernel lowers it to `net.core.somaxconn`.
  private static let backlog: Int32 = 4096

  /// Listens on `path`.
  ///
  /// A stale socket at the path, on which no process listens, is replaced. A socket in use and any other file are not
  /// changed. The lock file `path.lock` excludes other processes that start at the same time.
  /// - Parameters:
  ///   - mode: the permissions of the socket. It never has more than these, not even while it is created.
  ///   - group: the group of the socket; nil for the one of new files.
  public static func bind(
    path: String, mode: UInt32 = 0o660, group: UInt32? = nil
  ) throws(ListenError) -> UnixListener {
    let address = try asListenError(SocketAddress(path: path))
    try asListenError(checkDirectory(of: path))
    guard let lock = try asListenError(FileLock.acquire(lockPath(path))) else {
      throw .alreadyRunning(pid: livePID(path, address) ?? FileLock.holder(lockPath(path)), path: path)
    }
    try removeStaleSocket(path, address)
    let handle = try asListenError(listen(path, address, mode, group))
    return UnixListener(handle: handle, path: path, lock: lock, identity: FileIdentity(at: path))
  }

  private static func asListenError<Value: ~Copyable>(
    _ body: @autoclosure () throws(SystemError) -> Value
  ) throws(ListenError) -> Value { do throws(SystemError) { return try body() } catch { throw .system(error) } }

  private static func checkDirectory(of path: String) throws(SystemError) {
    let directory = FilePath.directory(of: path)
    var status = stat()
    let isThere = stat(directory, &status) == 0
    if isThere && status.st_mode & S_IFMT == S_IFDIR { return }
    throw SystemError(
      code: isThere ? ENOTDIR : currentErrno(), operation: "listen on", path: path,
      advice: "create directory \(directory) or pass another path with --socket")
  }

  /// Removes a socket on which no process listens.
  /// - Throws: if the socket is in use, or if there is another kind of file at the path.
  private static func removeStaleSocket(_ path: String, _ address: SocketAddress) throws(ListenError) {
    guard let found = FileIdentity(at: path) else { return }
    guard found.isSocket else { throw .notASocket(path: path) }
    let probe = try asListenError(makeSocket(path))
    if address.withPointer({ connect(probe.rawValue, $0, $1) }) == 0 {
      let pid = try? PeerCredentials(of: probe.rawValue).pid
      let name = pid.flatMap { try? SmallFile.read("/proc/\($0)/comm", limit: 64) }
      if name == Array("systemd\n".utf8) { throw .serviceManager(path: path) }
      throw .alreadyRunning(pid: pid, path: path)
    }
    switch currentErrno() {
    case ECONNREFUSED: break
    case ENOENT: return
    // The queue of the listener is full, so there is a listener.
    case EAGAIN: throw .alreadyRunning(pid: nil, path: path)
    case let code:
      throw .system(
        SystemError(
          code: code, operation: "check for a listener on", path: path, advice: "remove the file if it is not in use"))
    }
    guard unlink(path) == 0 || currentErrno() == ENOENT else { throw .system(.last("remove the stale socket", path)) }
  }

  /// The process that listens on the path; nil if none does or the kernel does not report it.
  private static func livePID(_ path: String, _ address: SocketAddress) -> Int32? {
    guard let probe = try? makeSocket(path), address.withPointer({ connect(probe.rawValue, $0, $1) }) == 0 else {
      return nil
    }
    return try? PeerCredentials(of: probe.rawValue).pid
  }

  private static func makeSocket(_ path: String) throws(SystemError) -> Descriptor {
    let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
    return try Descriptor("create a socket for", path) { socket(AF_UNIX, kind, 0) }
  }

  private static func listen(
    _ path: String, _ address: SocketAddress, _ mode: UInt32, _ group: UInt32?
  ) throws(SystemError) -> Descriptor {
    let handle = try makeSocket(path)
    refuseDescriptors(handle.rawValue)
    // Linux gives the file the mode of the unbound socket, without the bits of the umask. chmod adds those bits, so the
    // mode never exceeds the requested one. Changing the umask instead would affect files of other threads. The permissions of
    // the group follow when the socket has its group.
    let first = group == nil ? mode : mode & ~0o070
    guard fchmod(handle.rawValue, first) == 0 else { throw .last("set the permissions of the socket", path) }
    guard address.withPointer({ Glibc.bind(handle.rawValue, $0, $1) }) == 0 else { throw .last("listen on", path) }
    if let group { try setGroup(group, of: path) }
    guard chmod(path, mode) == 0 else { throw .last("set the permissions of the socket", path) }
    guard Glibc.listen(handle.rawValue, backlog) == 0 else { throw .last("listen on", path) }
    return handle
  }
}

extension UnixListener {
  private static func setGroup(_ group: UInt32, of path: String) throws(SystemError) {
    guard lchown(path, uid_t.max, group) != 0 else { return }
    let code = currentErrno()
    unlink(path)
    let advice = code == EPERM ? "run feedd as a member of the group" : nil
    throw SystemError(code: code, operation: "give the socket to group \(group):", path: path, advice: advice)
  }

  /// Takes ownership of a listening socket that the service manager passed (socket activation).
  /// - Throws: ``ListenError/inherited(_:)`` if it is not a listening Unix stream socket.
  public convenience init(inherited number: Int32) throws(ListenError) {
    guard FileIdentity(of: number)?.isSocket == true else {
      throw .inherited("descriptor \(number) is not an open socket")
    }
    let handle = Descriptor(owning: number)
    guard Self.option(number, SO_DOMAIN) == AF_UNIX else { throw .inherited("it is not a Unix socket") }
    guard Self.option(number, SO_TYPE) == Int32(SOCK_STREAM.rawValue) else {
      throw .inherited("it is not a stream socket; use ListenStream=")
    }
    guard Self.option(number, SO_ACCEPTCONN) == 1 else { throw .inherited("it does not listen; use Accept=no") }
    guard clinux_set_close_on_exec(number, 1) == 0, clinux_set_nonblocking(number, 1) == 0 else {
      throw .system(.last("configure the socket of the service manager"))
    }
    Self.refuseDescriptors(number)
    self.init(handle: handle, path: Self.boundPath(number), lock: nil, identity: nil)
  }

  /// Lets clients send bytes only. Nobody takes descriptors that come with them, so the kernel closes these when the bytes are
  /// read or the connection is closed. If the client has closed its own copy, that is the last one: the reader frees a file in
  /// memory, or waits as long as the client wished until a TCP connection has sent its data (SO_LINGER). Without effect before
  /// Linux 6.16, and for connections that already wait.
  private static func refuseDescriptors(_ number: Int32) { _ = clinux_refuse_descriptors(number) }

  private static func option(_ number: Int32, _ name: Int32) -> Int32? {
    var value: Int32 = 0
    var size = socklen_t(MemoryLayout<Int32>.size)
    return getsockopt(number, SOL_SOCKET, name, &value, &size) == 0 ? value : nil
  }

  private static func boundPath(_ number: Int32) -> String {
    var address = sockaddr_un()
    var size = socklen_t(MemoryLayout<sockaddr_un>.size)
    let result = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(number, $0, &size) }
    }
    guard result == 0 else { return "" }
    let length = Int(size) - MemoryLayout<sa_family_t>.size
    return withUnsafeBytes(of: address.sun_path) { bytes in
      // The name of an abstract socket follows a zero, for which systemd writes @.
      bytes[0] == 0 && length > 1
        ? "@" + String(decoding: bytes[1..<length], as: UTF8.self)
        : String(decoding: bytes.prefix(max(length, 0)).prefix { $0 != 0 }, as: UTF8.self)
    }
  }
}

/// The reason why the daemon cannot listen on its socket.
public enum ListenError: Error, Equatable, Sendable {
  case system(SystemError)
  /// Another process listens on the path; its pid if it is known.
  case alreadyRunning(pid: Int32?, path: String)
  /// systemd listens on the path, for a service.
  case serviceManager(path: String)
  /// The file at the path is not a socket. It was not changed.
  case notASocket(path: String)
  /// The passed socket cannot be used, for this reason.
  case inherited(String)
}

extension ListenError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .system(let error): error.description
    case .alreadyRunning(let pid, let path):
      "cannot listen on \(path): another feedd is running (\(pid.map { "pid \($0)" } ?? "pid unknown")); "
        + "stop it or pass another path with --socket"
    case .serviceManager(let path):
      "cannot listen on \(path): systemd listens there for the service feedd; use the service, or stop it and feedd.socket, "
        + "or pass another path with --socket"
    case .notASocket(let path):
      "cannot listen on \(path): the file is not a socket; remove it or pass another path with --socket"
    case .inherited(let reason): "cannot use the socket of the service manager: \(reason)"
    }
  }
}
