import TestSupport
import Testing

extension RawClient {
  /// Sends `ping` and receives its answer.
  func ping(_ id: Int) throws {
    try send("{\"jsonrpc\":\"2.0\",\"id\":\(id),\"method\":\"ping\"}")
    let answer = try receiveJSON()
    guard answer["id"].int == id, answer.has("result") else { throw TestFailure("answer to ping \(id): \(answer)") }
  }

  /// Returns the text of a `ping` of about `size` bytes. The daemon ignores the unknown member.
  static func longPing(_ id: Int, size: Int) -> String {
    "{\"jsonrpc\":\"2.0\",\"id\":\(id),\"method\":\"ping\",\"params\":{\"x\":\"\(String(repeating: "y", count: size))\"}}"
  }
}
