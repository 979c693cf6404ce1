import FeedSystem
import Glibc
import TestSupport
import Testing

@Suite("Listening Unix sockets")
struct UnixListenerTests {
  let directory: TemporaryDirectory
  let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = directory.file("s")
  }

  func refusal(_ path: String) -> String {
    do throws(ListenError) {
      return "listens on \(try UnixListener.bind(path: path).path)"
    } catch {
      return error.description
    }
  }

  func mode(_ path: String) -> mode_t? {
    var status = stat()
    return lstat(path, &status) == 0 ? status.st_mode & 0o777 : nil
  }

  @Test func acceptedConnectionHasCredentials() throws {
    let listener = try UnixListener.bind(path: path)
    expect(!listener.isInherited)
    expectEqual(listener.accept(), .none)
    let client = try UnixStream.connect(path: path)
    try expect(!Readiness.readable.wait(on: listener.descriptor, timeout: testTimeout).isEmpty)
    guard case .connection(let number) = listener.accept() else {
      Issue.record("nothing accepted")
      return
    }
    let accepted = Descriptor(owning: number)
    var groups = [gid_t](repeating: 0, count: Int(getgroups(0, nil)))
    try require(getgroups(Int32(groups.count), &groups) == groups.count)
    let own = PeerCredentials(pid: getpid(), uid: geteuid(), gid: getegid(), groups: groups)
    try expectEqual(PeerCredentials(of: accepted.rawValue), own)
    try expectEqual(client.peerCredentials(), own)
    expect(fcntl(number, F_GETFL) & O_NONBLOCK != 0)
    expect(fcntl(number, F_GETFD) & FD_CLOEXEC != 0)
  }

  /// Sends a byte with a descriptor. Returns the error; 0 for none.
  func sendDescriptor(_ sent: Int32, to socket: Int32) -> Int32 {
    // A `cmsghdr`, then the descriptor. C has only macros to make it.
    var control = [UInt64](repeating: 0, count: 3)
    control.withUnsafeMutableBytes { bytes in
      bytes.storeBytes(of: 20, as: Int.self)
      bytes.storeBytes(of: SOL_SOCKET, toByteOffset: 8, as: Int32.self)
      bytes.storeBytes(of: Int32(SCM_RIGHTS), toByteOffset: 12, as: Int32.self)
      bytes.storeBytes(of: sent, toByteOffset: 16, as: Int32.self)
    }
    var byte: UInt8 = 0
    return withUnsafeMutableBytes(of: &byte) { byte in
      var vector = iovec(iov_base: byte.baseAddress, iov_len: 1)
      return withUnsafeMutablePointer(to: &vector) { vector in
        control.withUnsafeMutableBytes { control in
          var message = msghdr()
          (message.msg_iov, message.msg_iovlen) = (vector, 1)
          (message.msg_control, message.msg_controllen) = (control.baseAddress, control.count)
          return sendmsg(socket, &message, Int32(MSG_NOSIGNAL)) == 1 ? 0 : errno
        }
      }
    }
  }

  /// The last copy of a descriptor would be closed by the process that reads the connection, which may wait for that.
  @Test func clientsSendNoDescriptors() throws {
    let listener = try UnixListener.bind(path: path)
    let client = try UnixStream.connect(path: path)
    // The number of SO_PASSRIGHTS; kernels before Linux 6.16 do not know it.
    var value: Int32 = -1
    var size = socklen_t(MemoryLayout<Int32>.size)
    guard getsockopt(listener.descriptor, SOL_SOCKET, 83, &value, &size) == 0 else { return }
    expectEqual(value, 0)
    expectEqual(sendDescriptor(listener.descriptor, to: client.descriptor), EPERM)
    try [UInt8(1)].withUnsafeBytes { try client.writeAll($0) }
  }

  @Test func socketHasItsPermissionsAndIsRemovedWithItsListener() throws {
    do {
      let listener = try UnixListener.bind(path: path)
      expectEqual(mode(listener.path), 0o660)
      expectEqual(mode("\(path).lock"), 0o600)
    }
    expectEqual(mode(path), nil)
    expectEqual(mode("\(path).lock"), nil)
  }

  @Test func bindRefusesSocketInUse() throws {
    let listener = try UnixListener.bind(path: path)
    let message =
      "cannot listen on \(path): another feedd is running (pid \(getpid())); stop it or pass another path with --socket"
    expectEqual(refusal(path), message)
    expectEqual(mode(listener.path), 0o660)
    _ = try UnixStream.connect(path: path)
  }

  @Test func bindRefusesSocketInUseWithoutLockFile() throws {
    let listener = try UnixListener.bind(path: path)
    unlink("\(path).lock")
    expect(refusal(listener.path).hasPrefix("cannot listen on \(path): another feedd is running (pid \(getpid()))"))
  }

  @Test func bindReplacesStaleSocket() throws {
    let stale = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    let bound = withUnsafePointer(to: address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(stale, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    close(stale)
    try require(bound == 0 && mode(path) != nil)
    let listener = try UnixListener.bind(path: path)
    _ = try UnixStream.connect(path: listener.path)
  }

  @Test func bindRefusesOtherFiles() throws {
    try SmallFile.replace(path, with: Array("precious".utf8))
    expect(refusal(path).hasPrefix("cannot listen on \(path): the file is not a socket"))
    try expectEqual(SmallFile.read(path), Array("precious".utf8))
  }

  @Test func fileThatReplacedTheSocketIsNotRemoved() throws {
    do {
      let listener = try UnixListener.bind(path: path)
      unlink(listener.path)
      try SmallFile.replace(path, with: [1])
    }
    try expectEqual(SmallFile.read(path), [1])
  }

  @Test func errorsOfPathsNameTheNextStep() {
    let long = "/tmp/" + String(repeating: "x", count: 103)
    expect(refusal(long).hasSuffix("file name too long; pass a path of at most 107 bytes, not 108"))
    expectEqual(refusal(""), "cannot use socket path '': invalid argument; pass a non-empty path")
    let missing = directory.file("no/such/s")
    expectEqual(
      refusal(missing),
      "cannot listen on \(missing): no such file or directory; "
        + "create directory \(directory.file("no/such")) or pass another path with --socket")
    let child = "\(directory.file("file"))/s"
    try? SmallFile.replace(directory.file("file"), with: [])
    expect(refusal(child).contains("not a directory; create directory"))
  }

  @Test func inheritedSocketIsChecked() throws {
    func refusal(_ number: Int32) -> String {
      do throws(ListenError) {
        _ = try UnixListener(inherited: number)
        return "accepted"
      } catch {
        return error.description
      }
    }
    expect(refusal(-1).contains("is not an open socket"))
    expect(refusal(socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)).contains("use ListenStream="))
    expect(refusal(socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)).contains("it does not listen"))
    expect(refusal(socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)).contains("it is not a Unix socket"))
    let listener = try UnixListener.bind(path: path)
    do {
      let inherited = try UnixListener(inherited: dup(listener.descriptor))
      expectEqual(inherited.path, path)
      expect(inherited.isInherited)
      expect(fcntl(inherited.descriptor, F_GETFD) & FD_CLOEXEC != 0)
    }
    expectEqual(mode(path), 0o660)
  }

  @Test("the name of an abstract socket begins with @, as in units of systemd") func inheritedAbstractSocket() throws {
    let number = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    // The kernel chooses a name of five digits for an address without one.
    var address = sockaddr(sa_family: sa_family_t(AF_UNIX), sa_data: sockaddr().sa_data)
    expectEqual(bind(number, &address, socklen_t(MemoryLayout<sa_family_t>.size)), 0)
    expectEqual(listen(number, 1), 0)
    let name = try UnixListener(inherited: number).path
    expect(name.hasPrefix("@") && name.utf8.count == 6, "\(name)")
  }
}
