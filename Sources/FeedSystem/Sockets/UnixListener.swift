import CLinux
import Glibc

/// A Unix stream socket that accepts connections, made here or handed over by the service manager.
///
/// Closed when the last reference goes.
public final class UnixListener {
  private let handle: Descriptor
  /// Where clients connect to; empty when the socket was handed over and has no path.
  public let path: String
  /// Whether the service manager made the socket, and keeps it when this process ends.
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

  /// Removes the socket if this process made it and nobody put another in its place.
  deinit {
    if let identity, FileIdentity(at: path) == identity { unlink(path) }
  }

  /// To be waited on for reading: readable when there is a connection to accept.
  public var descriptor: Int32 { handle.rawValue }
}

extension UnixListener {
  /// The outcome of one ``accept()``.
  public enum Accepted: Equatable, Sendable {
    /// A connection; the descriptor does not block, is closed on exec, and belongs to the caller.
    case connection(Int32)
    /// Nobody waits.
    case none
    /// The peer gave up before it was accepted, or the like; the next may be well.
    case retry
    /// No descriptors or memory are left, here or in the system; the peer still waits.
    case exhausted(SystemError)
    /// The listener itself does not work.
    case failed(SystemError)
  }

  /// Takes the next connection. Never waits.
  public func accept() -> Accepted {
    let number = clinux_accept(descriptor)
    if number >= 0 { return .connection(number) }
    let error = SystemError.last("accept a connection at", path)
    switch error.code {
    case EAGAIN: return .none
    case EINTR, ECONNABORTED, EPERM, EPROTO: return .retry
    case EMFILE, ENFILE, ENOBUFS, ENOMEM: return .exhausted(error)
    default: return .failed(error)
    }
  }
}

extension UnixListener {
  /// Connections that wait to be accepted; the kernel lowers it to `net.core.somaxconn`.
  private static let backlog: Int32 = 4096

  /// Listens at `path`, for this user and this group only (mode 0660).
  ///
  /// A socket that nobody listens at any more is replaced; one that somebody does, and any other file, is left alone.
  /// `path.lock` keeps two starters apart. There is no moment at which the socket is more open than `mode` says.
  public static func bind(path: String, mode: UInt32 = 0o660) throws(ListenError) -> UnixListener {
    let address = try asListenError { () throws(SystemError) in try SocketAddress(path: path) }
    try asListenError { () throws(SystemError) in try checkDirectory(of: path) }
    guard let lock = try asListenError({ () throws(SystemError) in try FileLock.acquire("\(path).lock") }) else {
      throw .alreadyRunning(pid: livePID(path, address) ?? FileLock.holder("\(path).lock"), path: path)
    }
    try clearTheWay(path, address)
    let handle = try asListenError { () throws(SystemError) in try listen(path, address, mode) }
    return UnixListener(handle: handle, path: path, lock: lock, identity: FileIdentity(at: path))
  }

  private static func asListenError<Value: ~Copyable>(
    _ body: () throws(SystemError) -> Value
  ) throws(ListenError) -> Value {
    do throws(SystemError) { return try body() } catch { throw .system(error) }
  }

  private static func checkDirectory(of path: String) throws(SystemError) {
    let parent = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
    let directory = parent.isEmpty ? "/" : parent
    var status = stat()
    let remedy = "make the directory \(directory), or name another socket with --socket"
    guard stat(directory, &status) == 0 else {
      throw SystemError(code: currentErrno(), operation: "listen at", path: path, advice: remedy)
    }
    guard status.st_mode & S_IFMT == S_IFDIR else {
      throw SystemError(code: ENOTDIR, operation: "listen at", path: path, advice: remedy)
    }
  }

  /// Removes a socket that is left over; throws when what stands at the path is in use or something else.
  private static func clearTheWay(_ path: String, _ address: SocketAddress) throws(ListenError) {
    guard let found = FileIdentity(at: path) else { return }
    guard found.isSocket else { throw .notASocket(path: path) }
    let probe = try asListenError { () throws(SystemError) in try makeSocket(path) }
    if address.withPointer({ connect(probe.rawValue, $0, $1) }) == 0 {
      throw .alreadyRunning(pid: try? PeerCredentials(of: probe.rawValue).pid, path: path)
    }
    switch currentErrno() {
    case ECONNREFUSED: break
    case ENOENT: return
    // Its queue is full: somebody listens.
    case EAGAIN: throw .alreadyRunning(pid: nil, path: path)
    case let code:
      throw .system(
        SystemError(code: code, operation: "find out who listens at", path: path, advice: "remove it if nobody does"))
    }
    guard unlink(path) == 0 || currentErrno() == ENOENT else {
      throw .system(.last("remove the socket that is left over at", path))
    }
  }

  private static func livePID(_ path: String, _ address: SocketAddress) -> Int32? {
    guard let probe = try? makeSocket(path), address.withPointer({ connect(probe.rawValue, $0, $1) }) == 0 else {
      return nil
    }
    return try? PeerCredentials(of: probe.rawValue).pid
  }

  private static func makeSocket(_ path: String) throws(SystemError) -> Descriptor {
    let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
    let number = socket(AF_UNIX, kind, 0)
    guard number >= 0 else { throw .last("make a socket for", path) }
    return Descriptor(owning: number)
  }

  private static func listen(_ path: String, _ address: SocketAddress, _ mode: UInt32) throws(SystemError) -> Descriptor
  {
    let handle = try makeSocket(path)
    // Linux gives the file the mode of the unbound socket, less the umask; what the umask took is given back below. So the
    // mode only ever grows to what it should be, and no other thread's files are touched as a change of the umask would.
    guard fchmod(handle.rawValue, mode) == 0 else { throw .last("set the mode of the socket", path) }
    guard address.withPointer({ Glibc.bind(handle.rawValue, $0, $1) }) == 0 else { throw .last("listen at", path) }
    guard chmod(path, mode) == 0 else { throw .last("set the mode of the socket", path) }
    guard Glibc.listen(handle.rawValue, backlog) == 0 else { throw .last("listen at", path) }
    return handle
  }
}

extension UnixListener {
  /// Takes over a listening socket that the service manager passed (socket activation).
  /// - Throws: ``ListenError/inherited(_:)`` when it is not a listening Unix stream socket.
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
      throw .system(.last("prepare the socket of the service manager"))
    }
    self.init(handle: handle, path: Self.boundPath(number), lock: nil, identity: nil)
  }

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
      String(decoding: bytes.prefix(max(length, 0)).prefix { $0 != 0 }, as: UTF8.self)
    }
  }
}

/// Why the daemon cannot listen where it was told to.
public enum ListenError: Error, Equatable, Sendable {
  case system(SystemError)
  /// Somebody listens there already; the pid when it is known.
  case alreadyRunning(pid: Int32?, path: String)
  /// There is something at the path that is not a socket; it is left alone.
  case notASocket(path: String)
  /// What the service manager handed over cannot be used.
  case inherited(String)
}

extension ListenError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .system(let error): error.description
    case .alreadyRunning(let pid, let path):
      "another feedd is running, \(pid.map { "pid \($0)" } ?? "pid unknown") (socket \(path)); "
        + "stop it, or name another socket with --socket"
    case .notASocket(let path):
      "cannot listen at \(path): there is a file that is not a socket; remove it, or name another path with --socket"
    case .inherited(let reason): "cannot use the socket of the service manager: \(reason)"
    }
  }
}
