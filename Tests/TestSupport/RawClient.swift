import FeedSystem
import Glibc

/// A connection to a daemon that sends frames or arbitrary bytes, with blocking calls.
public final class RawClient {
  public let stream: UnixStream
  private var buffer: [UInt8] = []

  public init(path: String) throws { stream = try UnixStream.connect(path: path) }

  public init(_ stream: UnixStream) { self.stream = stream }

  /// Sends one JSON text as a frame.
  public func send(_ json: String) throws { try sendBytes(Self.frame(Array(json.utf8))) }

  /// Sends bytes without a frame.
  public func sendBytes(_ bytes: [UInt8]) throws {
    try bytes.withUnsafeBytes { try stream.writeAll($0, timeout: testTimeout) }
  }

  /// Returns the bytes of a frame: the big-endian length and the body.
  public static func frame(_ body: [UInt8]) -> [UInt8] {
    withUnsafeBytes(of: UInt32(body.count).bigEndian) { Array($0) } + body
  }

  /// Returns the JSON text of the next frame; nil if the stream ends after a frame.
  public func receive(timeout: Duration = testTimeout) throws -> String? {
    while true {
      if let body = takeFrame() { return String(decoding: body, as: UTF8.self) }
      guard try fill(timeout) else {
        guard buffer.isEmpty else { throw TestFailure("the stream ended within a frame, after \(buffer.count) bytes") }
        return nil
      }
    }
  }

  /// Receives the next frame as a JSON value.
  package func receiveJSON() throws -> JSONValue { try JSONValue(receive()) }

  /// Receives frames until one contains all of `words`, and returns it.
  public func receive(having words: String..., timeout: Duration = testTimeout) throws -> String {
    while let text = try receive(timeout: timeout) {
      if words.allSatisfy({ text.contains($0) }) { return text }
    }
    throw TestFailure("the stream ended before a frame with \(words)")
  }

  /// Receives until the stream ends.
  /// - Returns: the received frames.
  public func receiveToEnd(timeout: Duration = testTimeout) throws -> [String] {
    var frames: [String] = []
    while let text = try receive(timeout: timeout) { frames.append(text) }
    return frames
  }

  private func takeFrame() -> [UInt8]? {
    guard buffer.count >= 4 else { return nil }
    let length = buffer[..<4].reduce(0) { $0 << 8 | Int($1) }
    guard buffer.count >= 4 + length else { return nil }
    defer { buffer.removeFirst(4 + length) }
    return Array(buffer[4..<4 + length])
  }

  /// Reads more bytes. Returns false at the end of the stream. A reset counts as the end, because the daemon can close a
  /// connection without reading all input.
  private func fill(_ timeout: Duration) throws -> Bool {
    guard try !stream.wait(for: .readable, timeout: timeout).isEmpty else {
      throw TestFailure("timed out after \(timeout) with \(buffer.count) bytes of an incomplete frame")
    }
    var chunk = [UInt8](repeating: 0, count: 256 << 10)
    do {
      let count = try chunk.withUnsafeMutableBytes { try stream.read(into: $0) } ?? 0
      buffer += chunk[..<count]
      return count > 0
    } catch let error as SystemError where error.code == ECONNRESET {
      return false
    }
  }
}

extension [UInt8] {
  /// Returns the bytes `count` times. `joined()` takes a hundred times as long in a build without the optimizer.
  public func repeated(_ count: Int) -> [UInt8] {
    var all: [UInt8] = []
    all.reserveCapacity(self.count * count)
    for _ in 0..<count { all += self }
    return all
  }
}
