import FeedJSON
import Testing

/// Decoded strings, their comparison and their order.
@Suite struct JSONViewStringTests {
  /// Source, decoded string, decoded bytes when they differ from that.
  static let strings: [(String, String, [UInt8]?)] = [
    (#""""#, "", nil), (#""plain""#, "plain", nil), (#""é日😀""#, "é日😀", nil),
    (#""\"\\\/\b\f\n\r\t""#, "\"\\/\u{8}\u{C}\n\r\t", nil),
    (#""\u0000""#, "\u{0}", nil), (#""a\u0000b""#, "a\u{0}b", nil), (#""\u00E9\u65e5""#, "é日", nil),
    (#""\ud83d\ude00!""#, "😀!", nil), (#""\uDBFF\uDFFF""#, "\u{10FFFF}", nil), (#""\ud800\udc00""#, "\u{10000}", nil),
    (#""\ud800""#, "\u{FFFD}", [0xED, 0xA0, 0x80]), (#""\udfffx""#, "\u{FFFD}x", [0xED, 0xBF, 0xBF, 0x78]),
    (#""\ud800\n""#, "\u{FFFD}\n", [0xED, 0xA0, 0x80, 0x0A]),
    (#""\ude00\ud83d""#, "\u{FFFD}\u{FFFD}", [0xED, 0xB8, 0x80, 0xED, 0xA0, 0xBD]),
    (#""\ud83d\ud83d\ude00""#, "\u{FFFD}😀", [0xED, 0xA0, 0xBD, 0xF0, 0x9F, 0x98, 0x80]),
    (#""\ud83d\u0041""#, "\u{FFFD}A", [0xED, 0xA0, 0xBD, 0x41]), (#""\uffff\ufffd""#, "\u{FFFF}\u{FFFD}", nil),
  ]

  @Test(arguments: strings)
  func decodes(_ source: String, _ string: String, _ bytes: [UInt8]?) throws {
    let expected = bytes ?? Array(string.utf8)
    try withJSON(source) { view in
      #expect(view.string?.unicodeScalars.elementsEqual(string.unicodeScalars) == true)
      #expect(view.withDecodedUTF8 { Array($0) } == expected)
      #expect(view.hasEscapes == source.contains("\\"))
      #expect(expected.withUnsafeBytes { view.stringEquals(utf8: $0) })
      #expect(!(expected + [0x78]).withUnsafeBytes { view.stringEquals(utf8: $0) })
      if !expected.isEmpty { #expect(!expected.dropLast().withUnsafeBytes { view.stringEquals(utf8: $0) }) }
    }
  }

  @Test func literals() throws {
    try withJSON(#"["push","p\u0075sh",7]"#) { view in
      #expect(view.elements.map { $0.stringEquals("push") } == [true, true, false])
      #expect(view.elements.map { $0.stringEquals("pusH") } == [false, false, false])
      #expect(view.elements.map { $0.stringEquals("pus") } == [false, false, false])
      #expect(view.element(at: 2)?.string == nil)
      #expect(view.element(at: 2)?.withDecodedUTF8 { $0.count } == nil)
    }
  }

  @Test func orderIsThatOfCodePoints() throws {
    // Surrogates that stand alone have code points of their own, between U+D7FF and U+E000.
    let ascending = [
      #""""#, #""\u0000""#, #""A""#, #""Aa""#, #""\u0041b""#, #""B""#, #""é""#, #""\ud7ff""#, #""\ud800""#,
      #""\ud800x""#,
      #""\udfff""#, #""\ue000""#, #""\uffff""#, #""😀""#, #""\ud83d\ude01""#, #""\udbff\udfff""#,
    ]
    for (i, a) in ascending.enumerated() {
      for (j, b) in ascending.enumerated() {
        try withJSON(a) { a in
          try withJSON(b) { b in
            #expect(a.compareString(b) == (i - j).signum(), "\(i) \(j)")
            #expect(a.equals(b) == (i == j))
          }
        }
      }
    }
  }

  @Test func aLongStringWithEscapes() throws {
    let part = "line of a text with a quote \" and an é\n"
    let text = String(repeating: part, count: 3000)
    var buffer = ByteBuffer()
    buffer.appendJSONString(text)
    try withJSON(buffer.array) { #expect($0.string == text) }
  }
}
