import CLinux
import Glibc

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
