import FeedJSON
import FeedSystem

/// Questions and answers on one connection of feedd, one at a time, for what is not timed.
struct Dialogue: ~Copyable {
  let stream: UnixStream
  private var scanner = JSONScanner()

  init(_ stream: UnixStream) { self.stream = stream }

  /// Sends a request and waits for its answer; what comes before it is dropped.
  mutating func ask(_ method: String, _ params: String = "{}") throws {
    let frame = Texts.frame(Texts.request(method, params))
    try ask(frame[0], method)
  }

  /// The same with a frame that is made already.
  mutating func ask(_ frame: UnsafeRawBufferPointer, _ method: String) throws {
    try stream.writeAll(frame)
    while true {
      let answer = try next()
      let view = try answer.withUnsafeBytes { bytes in
        let message = try scanner.scan(bytes)
        return (isAnswer: message.member("id") != nil, error: message.member("error")?.member("message")?.string)
      }
      if let error = view.error { throw BenchError("feedd refused '\(method)': \(error)") }
      if view.isAnswer { return }
    }
  }

  private func next() throws -> [UInt8] {
    let header = try read(4)
    return try read(header.reduce(0) { $0 << 8 | Int($1) })
  }

  private func read(_ count: Int) throws -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    var filled = 0
    while filled < count {
      let more = try bytes.withUnsafeMutableBytes {
        try stream.read(into: UnsafeMutableRawBufferPointer(rebasing: $0[filled...]))
      }
      guard let more, more > 0 else { throw BenchError("the connection ended") }
      filled += more
    }
    return bytes
  }
}
