import CLinux
import Glibc

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
