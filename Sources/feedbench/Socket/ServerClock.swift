import FeedSystem

/// The processor time of a server, as the kernel counts it: it tells more than the clock when others share the machine.
struct ServerClock {
  private let path: String

  /// - Parameter stream: a connection to the server.
  init(_ stream: UnixStream) throws {
    path = "/proc/\(try stream.peerCredentials().pid)/schedstat"
  }

  /// Nanoseconds so far; nil when the kernel does not tell.
  var now: Double? {
    guard let bytes = try? SmallFile.read(path), let first = bytes.split(separator: UInt8(ascii: " ")).first else {
      return nil
    }
    return Double(String(decoding: first, as: UTF8.self))
  }
}
