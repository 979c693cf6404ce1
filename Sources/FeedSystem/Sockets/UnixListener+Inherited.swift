import CLinux
import Glibc

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
