import FeedWire
import Testing

/// The method is found at the beginning of a request, or nothing is.
@Suite struct MethodTests {
  private func beginning(_ text: String) -> Method? {
    Array(text.utf8).withUnsafeBytes { Method(atBeginningOf: $0) }
  }

  @Test func asClientsWriteIt() {
    #expect(beginning(#"{"jsonrpc":"2.0","id":7,"method":"update","params":{"feed":"a"}}"#) == .update)
    #expect(beginning(#"{"jsonrpc":"2.0","method":"set","params":{},"id":"x"}"#) == .set)
    #expect(beginning(#"{"jsonrpc":"2.0","id":-1.5E+3,"method":"ping"}"#) == .ping)
    #expect(beginning(#"{"jsonrpc":"2.0","id":"","method":"define","params":"a \" and \n"}"#) == .define)
  }

  @Test(arguments: [
    "", "{", "[]", #"{"method":"update"}"#, #"{"jsonrpc":"2.0"}"#, #"{"jsonrpc":"2.0","id":1}"#,
    #"{"jsonrpc":"2.0","id":"#, #"{"jsonrpc":"2.0","id":1"#, #"{"jsonrpc":"2.0","id":,"method":"set"}"#,
    #"{"jsonrpc":"2.0","id":null,"method":"set"}"#, #"{"jsonrpc":"2.0","id":[],"method":"set"}"#,
    #"{"jsonrpc":"2.0","id": 1,"method":"set"}"#, #"{"jsonrpc":"2.0","id":"\"","method":"set"}"#,
    #"{"jsonrpc":"2.0","method"#, #"{"jsonrpc":"2.0","method":"#, #"{"jsonrpc":"2.0","method":"set"#,
    #"{"jsonrpc":"2.0","method":1}"#, #"{"jsonrpc":"2.0","method":"nothing"}"#,
    #"{"jsonrpc":"2.0","method":"s\u0065t"}"#,
    #"{"jsonrpc":"2.0","params":{},"method":"set"}"#, #"{"jsonrpc":"1.0","method":"set"}"#,
  ]) func uncertain(_ text: String) {
    #expect(beginning(text) == nil)
  }
}
