import FeedChange
import FeedJSON
import Testing

@testable import FeedWire

/// Every error's code and data (`Protocol/README.md`, section 8), and the bounded length of its message.
@Suite struct ErrorTests {
  private func response(_ error: FeedError, id: String? = "1") -> String {
    var buffer = ByteBuffer()
    if let id {
      Array(id.utf8).withUnsafeBytes { buffer.appendError(error, id: $0) }
    } else {
      buffer.appendError(error, id: Optional<UnsafeRawBufferPointer>.none)
    }
    return String(decoding: buffer.bytes, as: UTF8.self)
  }

  @Test(arguments: [
    (FeedError.parseError(offset: 3, reason: "r"), -32700, #"{"offset":3}"#),
    (.invalidRequest(reason: "r"), -32600, "{}"),
    (.methodNotFound("m"), -32601, #"{"method":"m"}"#),
    (.invalidParams(member: "at", reason: "r"), -32602, #"{"member":"at"}"#),
    (.internalError(reason: "r"), -32603, "{}"),
    (.unknownFeed("f"), -32000, #"{"feed":"f"}"#),
    (.definitionConflict(feed: "f", reason: "r"), -32001, #"{"feed":"f"}"#),
    (.wrongKind(feed: "f", kind: "array", wanted: "a collection"), -32002, nil),
    (
      .noIdentity(feed: "f", index: 4, path: "$.id", found: "nothing"), -32003, #"{"feed":"f","index":4,"path":"$.id"}"#
    ),
    (.noIdentity(feed: "f", index: 4, path: "", found: "null"), -32003, #"{"feed":"f","index":4}"#),
    (
      .badQuery(member: "path", text: "$[", offset: 2, reason: "r"), -32004,
      #"{"member":"path","text":"$[","offset":2}"#
    ),
    (.indexOutOfRange(feed: "f", index: 9, count: 3, what: "row"), -32005, #"{"feed":"f","index":9,"count":3}"#),
    (.permissionDenied(reason: "r"), -32006, "{}"),
    (.limitExceeded(limit: "maxFrame", value: 7, reason: "r"), -32007, #"{"limit":"maxFrame","value":7}"#),
    (.storageFailed(reason: "r"), -32008, "{}"),
    (.operationFailed(index: 2, .unknownFeed("f")), -32000, #"{"op":2,"feed":"f"}"#),
    (.operationFailed(index: 2, FeedError.invalidParams(member: "a", reason: "r").naming("f")), -32602, nil),
    (FeedError.badQuery(member: "path", text: "", offset: 0, reason: "r").naming("f"), -32004, nil),
  ])
  func codeAndData(error: FeedError, code: Int, data: String?) {
    let text = response(error)
    #expect(text.hasPrefix(#"{"jsonrpc":"2.0","id":1,"error":{"code":\#(code),"message":""#))
    #expect(error.code == code)
    if let data { #expect(text.hasSuffix(#","data":\#(data)}}"#), "\(text)") }
    #expect(isJSON(text))
    #expect(!error.message.hasSuffix(".") && !error.message.contains("\n"))
    #expect(response(error, id: nil).hasPrefix(#"{"jsonrpc":"2.0","id":null,"error":{"code":\#(code)"#))
  }

  private func isJSON(_ text: String) -> Bool {
    var scanner = JSONScanner()
    return Array(text.utf8).withUnsafeBytes { (try? scanner.scan($0)) != nil }
  }

  private func data(_ error: FeedError, _ member: StaticString) -> String? {
    var scanner = JSONScanner()
    return Array(response(error).utf8).withUnsafeBytes { bytes in
      (try? scanner.scan(bytes))?.member("error")?.member("data")?.member(member)?.string
    }
  }

  @Test func quotedTextComesBackWhole() {
    for name in ["a\"b\\c", "\u{0}\u{1F}\u{7F}", "é😀\u{2028}", "/"] {
      #expect(data(.unknownFeed(name), "feed") == name)
      #expect(isJSON(response(.invalidParams(member: name, reason: name))))
    }
  }

  /// Long quotations are cut between characters; the advice behind them stays.
  @Test func longQuotationsAreCut() {
    for character in ["x", "é", "😀", "e\u{301}", "\u{1}"] {
      let name = String(repeating: character, count: 100_000)
      for error in [
        FeedError.unknownFeed(name), .methodNotFound(name), .definitionConflict(feed: name, reason: name),
        .wrongKind(feed: name, kind: name, wanted: name),
        .badQuery(member: "path", text: name, offset: 0, reason: name),
        .operationFailed(index: 0, .operationFailed(index: 1, .unknownFeed(name))),
        FeedError.invalidParams(member: name, reason: name).naming(name),
      ] {
        let text = response(error)
        #expect(text.utf8.count < 32_000)
        #expect(isJSON(text))
        #expect(error.message.utf8.count <= 1024 + 3)
      }
      #expect(FeedError.unknownFeed(name).message.hasSuffix("or list the feeds with method feeds"))
      let cut = data(.unknownFeed(name), "feed") ?? ""
      #expect(cut.hasSuffix("…"))
      #expect(name.unicodeScalars.starts(with: cut.unicodeScalars.dropLast()))
    }
  }

  @Test func theShortFormIsShort() {
    var buffer = ByteBuffer()
    Array("12".utf8).withUnsafeBytes {
      buffer.appendShortError(.unknownFeed(String(repeating: "x", count: 5000)), id: $0)
    }
    let text = String(decoding: buffer.bytes, as: UTF8.self)
    #expect(text.utf8.count <= 98 && isJSON(text))
    #expect(text.contains(#""id":12,"error":{"code":-32000,"#))
  }
}
