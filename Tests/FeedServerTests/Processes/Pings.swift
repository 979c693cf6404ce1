import TestSupport
import Testing

extension RawClient {
  /// One `ping` and its answer.
  func ping(_ id: Int) throws {
    try send("{\"jsonrpc\":\"2.0\",\"id\":\(id),\"method\":\"ping\"}")
    let answer = try receive()
    guard let answer, answer.contains("\"id\":\(id)") else {
      throw TestFailure("ping \(id) was answered with \(answer ?? "the end of the stream")")
    }
  }

  /// The text of a `ping` of about `size` bytes: unknown members are ignored.
  static func longPing(_ id: Int, size: Int) -> String {
    "{\"jsonrpc\":\"2.0\",\"id\":\(id),\"method\":\"ping\",\"params\":{\"x\":\"\(String(repeating: "y", count: size))\"}}"
  }
}
