import FeedChange
import FeedJSON
import TestSupport
import Testing

@testable import FeedWire

/// Valid and invalid requests, and the id of the response to an invalid one.
struct RequestTests {
  /// The texts of the id, the method and the parameters; or the id and the code of the error.
  private func read(_ text: String) -> String {
    var scanner = JSONScanner()
    return Array(text.utf8).withUnsafeBytes { bytes in
      guard let view = try? scanner.scan(bytes) else { return "not JSON" }
      var id: JSONView?
      do throws(FeedError) {
        let request = try Request(reading: view, id: &id)
        return [request.id, request.method, request.params].map(Self.text).joined(separator: " ")
      } catch {
        return "\(Self.text(id)) \(error.code)"
      }
    }
  }

  private static func text(_ view: JSONView?) -> String {
    view.map { String(decoding: $0.text, as: UTF8.self) } ?? "-"
  }

  @Test(arguments: [
    (#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, #"1 "ping" -"#),
    (#"{"params":{"a":1},"method":"x","id":"a\u0062","jsonrpc":"2.0"}"#, #""a\u0062" "x" {"a":1}"#),
    (#"{"jsonrpc":"2.0","method":"ping","params":{}}"#, #"- "ping" {}"#),
    (#"{"jsonrpc":"2.0","id":1.50,"method":"ping","more":[1]}"#, #"1.50 "ping" -"#),
    (#"{"jsonrpc":"2.0","id":1,"id":2,"method":"a","method":"b"}"#, #"2 "b" -"#),
    (#"{"jsonrpc":"\u0032.0","id":1,"\u006dethod":"ping"}"#, #"1 "ping" -"#),
  ])
  func acceptsValidRequests(text: String, result: String) { expectEqual(read(text), result) }

  @Test(arguments: [
    ("1", "- -32600"), ("null", "- -32600"), ("[]", "- -32600"), ("\"ping\"", "- -32600"), ("{}", "- -32600"),
    (#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, "- -32600"),
    (#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#, "- -32600"),
    (#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#, "- -32600"),
    (#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, "- -32600"),
    (#"{"id":7,"method":"ping"}"#, "7 -32600"), (#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#, "7 -32600"),
    (#"{"jsonrpc":2.0,"id":7,"method":"ping"}"#, "7 -32600"), (#"{"jsonrpc":"2.0","id":"7"}"#, "\"7\" -32600"),
    (#"{"jsonrpc":"2.0","id":7,"method":1}"#, "7 -32600"), (#"{"jsonrpc":"2.0","id":7,"method":null}"#, "7 -32600"),
    (#"{"jsonrpc":"2.0","id":7,"method":"x","params":[]}"#, "7 -32602"),
    (#"{"jsonrpc":"2.0","id":7,"method":"x","params":null}"#, "7 -32602"),
    (#"{"jsonrpc":"2.0","method":"x","params":"a"}"#, "- -32602"),
  ])
  func refusesInvalidRequests(text: String, result: String) { expectEqual(read(text), result) }
}
