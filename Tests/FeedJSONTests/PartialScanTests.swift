import TestSupport
import Testing

@testable import FeedJSON

/// Scanning a text in parts gives the same tokens and the same errors as scanning it at once.
@Suite("Scanning in parts") struct PartialScanTests {
  private static let texts: [String] = [
    "1", " \"a\" ", "[]", "{}", "[1,2,3]", "[[],[[]],{}]", #"{"a":1,"b":[true,null,{"c":"d"}],"e":{"f":{}}}"#,
    "[ 1 , [ 2 ,3] , {\"a\" : [ ] } ]", #"[{"id":1,"x":"\u0041"},{"id":2,"x":"é"},-1.5e3]"#,
    "[" + (0..<500).map { #"{"id":\#($0),"tags":["a","b"]}"# }.joined(separator: ",") + "]",
    "[1,2", #"{"a":1,}"#, "[1,2]]", "[1 2]", "", "  ", "[\"a]", "{\"a\" 1}", "[[[[[[[[[1]]]]]]]]]", "[nul]",
  ]

  private struct Outcome: Equatable {
    var tokens: [[UInt32]] = []
    var error: JSONError?
  }

  private func outcome(_ text: [UInt8], part: Int?) -> (outcome: Outcome, parts: Int) {
    var scanner = JSONScanner(maxDepth: 8)
    var parts = 0
    let outcome = text.withUnsafeBytes { bytes -> Outcome in
      do throws(JSONError) {
        var view: JSONView?
        while view == nil {
          parts += 1
          view = if let part { try scanner.scanPart(bytes, tokens: part) } else { try scanner.scan(bytes) }
        }
        let tokens = (0..<scanner.tokenCount).map { view!.token[$0] }
        return Outcome(tokens: tokens.map { [$0.offset, $0.length, $0.span, $0.info] })
      } catch {
        return Outcome(error: error)
      }
    }
    return (outcome, parts)
  }

  @Test("tokens and errors are those of one scan", arguments: texts)
  func parts(text: String) {
    let bytes = utf8(text)
    let whole = outcome(bytes, part: nil).outcome
    for part in [1, 2, 3, 7, 100, 100_000] { expectEqual(outcome(bytes, part: part).outcome, whole, "\(part)") }
  }

  /// Strings that take several parts, as names and as values: long ones, some of them invalid at their end.
  @Test(
    "long strings with escapes or other text are scanned in parts", arguments: ["\\n", "\\u00e9", "é", "😀", "a\\\"é"])
  func longStrings(piece: String) {
    let long = String(repeating: piece, count: 30_000 / piece.utf8.count)
    let name = String(repeating: piece, count: 11_000 / piece.utf8.count)
    let plain = String(repeating: "p", count: 5000)
    let texts = [
      "\"\(long)\"", "{\"\(long)\":\"\(long)\",\"\(long)b\":[\"\(long)\",1]}",
      "[\"\(long)\",\"\(long)\",{\"a\":\"\(long)\"}]",
      "[\"\(plain)\(long)\",\"\(plain)\(long)\",\"\"]", "{\"\(plain)\(long)\":\"\(plain)\(long)\"}",
      "{\"\(plain)\":\"\(long)\",\"\(plain)\":[\"\(long)\",{\"\(plain)\":\"\(long)\"}]}",
      "{\"\(name)\":\"\(String(repeating: long, count: 10))\"}",
      "[\"\(long)", "[\"\(long)\\", "[\"\(long)\\x\"]", "{\"a\":\"\(long)\u{1}\"}", "{\"\(long)\" 1}",
    ]
    for text in texts {
      let bytes = utf8(text)
      let whole = outcome(bytes, part: nil).outcome
      for part in [1, 100, 700] {
        let (found, parts) = outcome(bytes, part: part)
        expectEqual(found, whole, "\(part)")
        expect(parts > 1)
        // A part scans 16 bytes for each token, and at least 4 KiB of a string.
        let most = max(4096, 16 * part)
        expect(parts < bytes.count / most * 3 / 2 + 10, "\(parts) parts of \(bytes.count) bytes")
      }
    }
    let invalid = utf8("[\"\(long)") + [0xC3, 0x28, UInt8(ascii: "\"")]
    expectEqual(outcome(invalid, part: 1).outcome, outcome(invalid, part: nil).outcome)
  }

  @Test("a part scans about as many tokens as it should")
  func count() {
    let text = utf8("[" + (0..<10_000).map { "\($0)" }.joined(separator: ",") + "]")
    expect((90...110).contains(outcome(text, part: 100).parts))
  }

  @Test("text and tape may move between two parts")
  func moves() throws {
    let text = utf8("[" + (0..<5000).map { #"{"id":\#($0)}"# }.joined(separator: ",") + "]")
    var scanner = JSONScanner()
    var view: JSONView?
    var copies: [UnsafeMutableRawBufferPointer] = []
    defer { for copy in copies { copy.deallocate() } }
    while view == nil {
      let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: text.count, alignment: 1)
      copy.copyBytes(from: text)
      copies.append(copy)
      view = try scanner.scanPart(UnsafeRawBufferPointer(copy), tokens: 1000)
    }
    expect(copies.count > 5)
    expect(view?.count == 5000 && view?.element(at: 4999)?.member("id")?.int == 4999)
  }

  @Test("a text after a refused one is scanned from its beginning")
  func again() throws {
    var scanner = JSONScanner()
    let (wrong, right) = (utf8("[1,2,x]"), utf8("[3,4]"))
    #expect(throws: JSONError.self) {
      try wrong.withUnsafeBytes { while try scanner.scanPart($0, tokens: 1) == nil {} }
    }
    let count = try right.withUnsafeBytes { bytes in
      var view: JSONView?
      while view == nil { view = try scanner.scanPart(bytes, tokens: 1) }
      return view?.count
    }
    expectEqual(count, 2)
  }
}
