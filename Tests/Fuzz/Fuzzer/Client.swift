import FeedClient
import FeedSystem
import Glibc

/// Follows a feed of a hostile daemon, which sends the lines of the input as frames, the last one as it stands.
func fuzzClient(_ bytes: UnsafeRawBufferPointer) {
  var stream: [UInt8] = []
  let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
  for line in lines.dropLast() {
    withUnsafeBytes(of: UInt32(line.count).bigEndian) { stream += $0 }
    stream += line
  }
  stream += lines.last ?? UnsafeRawBufferPointer(start: nil, count: 0)[...]
  HostileDaemon.listen()
  let follower = Follower(path: HostileDaemon.path, options: WatchOptions(feed: "f"), keepsMirror: true)
  var connection: UnixStream?
  do throws(ClientError) {
    // Connects, and may wait for an answer.
    try follower.advance { _ throws(ClientError) in .proceed }
    connection = HostileDaemon.accept()
    guard let connection else { preconditionFailure("the client did not connect") }
    for start in stride(from: 0, to: stream.count, by: 50_000) {
      stream[start..<min(start + 50_000, stream.count)].withUnsafeBytes { _ = try? connection.write($0) }
      try follower.advance { _ throws(ClientError) in .proceed }
    }
    connection.shutDown(.writing)
    while follower.descriptor != nil { try follower.advance { _ throws(ClientError) in .proceed } }
  } catch {
    precondition(!"\(error)".isEmpty, "an error without a text")
  }
  _ = follower.mirror?.digest
}

/// The socket of the hostile daemon.
enum HostileDaemon {
  static let path = "/tmp/feedd-fuzz-\(getpid())"

  nonisolated(unsafe) private static let listener: UnixListener? = {
    _ = atexit { unlink(HostileDaemon.path) }
    return try? UnixListener.bind(path: path)
  }()

  /// Begins to listen.
  static func listen() { precondition(listener != nil, "cannot listen at \(path)") }

  static func accept() -> UnixStream? {
    guard let listener, case .connection(let number) = listener.accept() else { return nil }
    return UnixStream(owning: Descriptor(owning: number))
  }
}
