import FeedChange
import FeedJSON
import TestSupport
import Testing

@testable import FeedWire

/// The code and data of every error ("Errors" in `Protocol/README.md`), and the limited length of its message.
struct ErrorTests {
  private func response(_ error: FeedError, id: String? = "1") -> String {
    var buffer = ByteBuffer()
    if let id {
      Array(id.utf8).withUnsafeBytes { buffer.appendError(error, id: $0) }
    } else {
      buffer.appendError(error, id: nil)
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
    (
      .wrongKind(feed: "f", kind: "array", wanted: "a collection"), -32002,
      #"{"feed":"f","kind":"array","wanted":"a collection"}"#
    ),
    (
      .noIdentity(feed: "f", index: 4, path: "$.id", found: "nothing"), -32003, #"{"feed":"f","index":4,"path":"$.id"}"#
    ),
    (.noIdentity(feed: "f", index: 4, path: "", found: "null"), -32003, #"{"feed":"f","index":4}"#),
    (
      .badQuery(member: "path", text: "$[", offset: 2, reason: "r"), -32004,
      #"{"member":"path","text":"$[","offset":2}"#
    ),
    (.indexOutOfRange(feed: "f", index: 9, count: 3, what: .row), -32005, #"{"feed":"f","index":9,"count":3}"#),
    (.permissionDenied(reason: "r"), -32006, "{}"),
    (.limitExceeded(limit: "maxFrame", value: 7, reason: "r"), -32007, #"{"limit":"maxFrame","value":7}"#),
    (.storageFailed(reason: "r"), -32008, "{}"),
    (.behind(reason: "r"), -32008, "{}"),
    (.operationFailed(index: 2, .unknownFeed("f")), -32000, #"{"op":2,"feed":"f"}"#),
    (
      .operationFailed(index: 2, FeedError.invalidParams(member: "a", reason: "r").naming("f")), -32602,
      #"{"op":2,"feed":"f","member":"a"}"#
    ),
    (
      FeedError.badQuery(member: "path", text: "", offset: 0, reason: "r").naming("f"), -32004,
      #"{"feed":"f","member":"path","text":"","offset":0}"#
    ),
  ])
  func codeAndData(error: FeedError, code: Int, data: String) throws {
    var message = ByteBuffer()
    message.appendJSONString(error.message)
    let object =
      #"{"code":\#(code),"message":\#(String(decoding: message.bytes, as: UTF8.self)),"data":\#(data)}"#
    for id in ["1", nil] {
      let expected = #"{"jsonrpc":"2.0","id":\#(id ?? "null"),"error":\#(object)}"#
      try expect(isSameJSON(response(error, id: id), expected), "\(response(error, id: id))")
    }
    expectEqual(error.code, code)
    expect(!error.message.hasSuffix(".") && !error.message.contains("\n"))
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

  @Test(
    arguments: [(String?, Int, Int, IndexedPart, String)]([
      (nil, 12_345, 1, .section, #"feed "inbox" has no section 12,345: it has 1 section, counted from 0"#),
      ("inbox/urgent", 99, 3000, .row, #"section "inbox/urgent" has no row 99: it has 3,000 rows, counted from 0"#),
      ("inbox", -1, 0, .row, #"feed "inbox" has no row -1: it has 0 rows, counted from 0"#),
      (nil, 2, 2, .child, #"feed "inbox" has no child 2: it has 2 children, counted from 0"#),
      (nil, 4, 1, .placeOfChild, #"feed "inbox" has no place 4 for a child: it has 1 child; give 0 to 1"#),
    ]))
  func anIndexOutOfRangeNamesWhatHasTheItems(
    place: String?, index: Int, count: Int, what: IndexedPart, message: String
  ) {
    let error = FeedError.indexOutOfRange(feed: "inbox", place: place, index: index, count: count, what: what)
    expectEqual(error.message, message)
  }

  @Test func numbersOfMessagesAreGroupedAndThoseOfDataAreNot() {
    let error = FeedError.limitExceeded(limit: "maxElements", value: 10_000_000, reason: "delete some")
    expectEqual(error.message, "limit maxElements (10,000,000) exceeded: delete some")
    expect(response(error).hasSuffix(#""data":{"limit":"maxElements","value":10000000}}}"#))
    let condition = FeedError.conditionFailed(feed: "f", wanted: 999, present: 1000)
    expect(condition.message.hasPrefix(#"condition failed: feed "f" is at revision 1,000, not at revision 999; "#))
  }

  @Test func quotedValuesAreEscaped() {
    for name in ["a\"b\\c", "\u{0}\u{1F}\u{7F}", "é😀\u{2028}", "/"] {
      expectEqual(data(.unknownFeed(name), "feed"), name)
      expect(isJSON(response(.invalidParams(member: name, reason: name))))
    }
  }

  /// Values are truncated between characters. The next step after them is kept.
  @Test func longValuesAreTruncated() {
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
        expect(text.utf8.count < 32_000)
        expect(isJSON(text))
        expect(error.message.utf8.count <= 1024 + 3)
      }
      expect(FeedError.unknownFeed(name).message.hasSuffix("or list the feeds with method feeds"))
      let truncated = data(.unknownFeed(name), "feed") ?? ""
      expect(truncated.hasSuffix("…"))
      expect(name.unicodeScalars.starts(with: truncated.unicodeScalars.dropLast()))
    }
  }

  @Test func shortErrorHasOnlyTheCode() throws {
    var buffer = ByteBuffer()
    Array("12".utf8).withUnsafeBytes {
      buffer.appendShortError(.unknownFeed(String(repeating: "x", count: 5000)), id: $0)
    }
    let text = String(decoding: buffer.bytes, as: UTF8.self)
    expect(text.utf8.count <= 98)
    let expected = #"{"jsonrpc":"2.0","id":12,"error":{"code":-32000,"message":"message too long for maxFrame"}}"#
    try expect(isSameJSON(text, expected))
  }
}
