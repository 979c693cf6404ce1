import TestSupport
import FeedJSON
import Testing

/// Kinds, members and elements of views.
struct JSONViewTests {
  static let document =
    #"{"id":"x7","n":12, "deep":{"list":[1,[2,3],{"a":[]},"s"],"empty":{}},"\u0065sc":1,"n":-3.5e1,"t":true,"#
    + #""f":false,"z":null}"#

  @Test func kindsTextsAndOffsets() throws {
    try withJSON("  " + Self.document + "\n") { view in
      expectEqual(view.byteOffset, 2)
      expectEqual(String(decoding: view.text, as: UTF8.self), Self.document)
      expectEqual(view.kind, .object)
      expectEqual(view.count, 8)
      let expected: [JSONKind] = [.string, .number, .object, .number, .number, .true, .false, .null]
      expectEqual(view.members.map(\.value.kind), expected)
      for member in view.members {
        let part = Array(view.text)[(member.value.byteOffset - 2)...].prefix(member.value.text.count)
        expectEqual(Array(part), Array(member.value.text))
      }
    }
  }

  @Test func findsLastMemberWithDecodedName() throws {
    try withJSON(Self.document) { view in
      expectEqual(view.member("n")?.int, -35)
      expectEqual(view.member("esc")?.int, 1)
      expectEqual(view.member("id")?.string, "x7")
      expect(view.member("i") == nil)
      expect(view.member("ids") == nil)
      expect(view.member("") == nil)
      expect(view.member(utf8: UnsafeRawBufferPointer(start: nil, count: 0)) == nil)
      expectEqual(Array("deep".utf8).withUnsafeBytes { view.member(utf8: $0)?.member("empty")?.count }, 0)
      expect(view.member("deep")?.member("list")?.member("a") == nil, "an array has no members")
      expect(view.member("id")?.member("id") == nil, "nor has a string")
    }
    try withJSON(#"{"a":1,"\u0061":2}"#) { expectEqual($0.member("a")?.int, 2) }
    try withJSON(#"{"\u0061":1,"a":2}"#) { expectEqual($0.member("a")?.int, 2) }
    try withJSON(#"{"":5}"#) { expectEqual($0.member("")?.int, 5) }
    try withJSON(#"{"\u0061\u0062":1}"#) { expect($0.member("abc") == nil && $0.member("a") == nil) }
  }

  @Test func namesOfEveryLengthAreDistinguished() throws {
    for length in 0..<30 {
      let name = String("abcdefghijklmnopqrstuvwxyz0123".prefix(length))
      for place in 0..<max(1, length) {
        var other = Array(name.utf8)
        if length > 0 { other[place] ^= 1 }
        try withJSON("{\"\(String(decoding: other, as: UTF8.self))\":1,\"x\(name)\":2}") { view in
          expectEqual(Array(name.utf8).withUnsafeBytes { view.member(utf8: $0)?.int }, (length == 0 ? 1 : nil))
          expectEqual(other.withUnsafeBytes { view.member(utf8: $0)?.int }, 1)
        }
      }
    }
  }

  @Test func valuesOfAnObjectOfTwo() throws {
    func values(_ text: String) throws -> [String]? {
      try withJSON(text) { view in
        view.values(named: "feed", "element").map { [$0, $1].map { String(decoding: $0.text, as: UTF8.self) } }
      }
    }
    try expectEqual(values(#"{"feed":"a","element":{"feed":1}}"#), [#""a""#, #"{"feed":1}"#])
    try expectEqual(values(#"{ "feed" : [1,[2]] , "element" : 3 }"#), ["[1,[2]]", "3"])
    for other in [
      "[]", "{}", "1", #"{"feed":1}"#, #"{"element":1,"feed":2}"#, #"{"feed":1,"element":2,"x":3}"#,
      #"{"feed":1,"feed":2,"element":3}"#, #"{"feed":1,"elements":2}"#, #"{"feeds":1,"element":2}"#,
      #"{"\u0066eed":1,"element":2}"#, #"{"feed":1,"elemen\u0074":2}"#, #"["feed",1,"element",2]"#,
      #"{"Feed":1,"element":2}"#, #"{"feed":1,"Element":2}"#, #"{"feed":1,"elemenT":2}"#,
    ] {
      try expectEqual(values(other), nil, "\(other)")
    }
  }

  @Test func elementsInOrderAndByIndex() throws {
    try withJSON(#"[1,[2,3],{"a":[4]},"s"]"#) { view in
      expectEqual(
        view.elements.map { String(decoding: $0.text, as: UTF8.self) }, ["1", "[2,3]", #"{"a":[4]}"#, "\"s\""])
      expectEqual(view.element(at: 2)?.member("a")?.element(at: 0)?.int, 4)
      expectEqual(view.element(at: 3)?.string, "s")
      expect(view.element(at: 4) == nil)
      expect(view.element(at: -1) == nil)
      expect(view.element(at: .max) == nil)
      expect(Array(view.members.map(\.key.kind)).isEmpty)
    }
    try withJSON(#"{"a":1}"#) { view in
      expect(view.element(at: 0) == nil)
      expect(view.elements.map(\.kind).isEmpty)
    }
  }

  @Test func booleansAndNull() throws {
    try withJSON("[true,false,null,0]") { view in
      expectEqual(view.elements.map(\.bool), [true, false, nil, nil])
      expectEqual(view.elements.map(\.isNull), [false, false, true, false])
      expectEqual(view.elements.map(\.count), [0, 0, 0, 0])
    }
  }

  @Test func compactnessIgnoresSpaceAroundValue() throws {
    try withJSON(#" { "a b" : [1,2] , "c":[1, 2], "d":{ }, "e":[[ ]]} "#) { view in
      expect(!view.isCompact)
      expectEqual(view.members.map(\.value.isCompact), [true, false, false, false])
      expectEqual(view.members.map(\.key.isCompact), [true, true, true, true])
      try expectEqual(compacted(Array(view.text)), Array(#"{"a b":[1,2],"c":[1,2],"d":{},"e":[[]]}"#.utf8))
    }
    try withJSON(" [1] ") { expect($0.isCompact, "white space around a value is not inside it") }
  }
}

/// Decoded strings, their comparison and their order.
struct JSONViewStringTests {
  @Test func stringsAreDecodedUpToALimit() throws {
    for (text, length) in [
      ("\"\"", 0), ("\"abc\"", 3), ("\"\\u0061\\u0062\"", 2), ("\"é\\n\"", 3), ("\"\\ud83d\\ude00\"", 4),
    ] {
      try withJSON(text) { view in
        for limit in 0...8 {
          expectEqual(view.string(atMost: limit), (limit >= length ? view.string : nil), "\(text) \(limit)")
        }
      }
    }
    for text in ["1", "null", "[\"a\"]", "{}"] {
      try withJSON(text) { expectEqual($0.string(atMost: 100), nil) }
    }
    try withJSON("\"" + String(repeating: "\\u0041", count: 129) + "\"") { expectEqual($0.string(atMost: 128), nil) }
  }

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
      expectEqual(view.string?.unicodeScalars.elementsEqual(string.unicodeScalars), true)
      expectEqual(view.withDecodedUTF8 { Array($0) }, expected)
      expectEqual(view.hasEscapes, source.contains("\\"))
      expect(expected.withUnsafeBytes { view.stringEquals(utf8: $0) })
      expect(!(expected + [0x78]).withUnsafeBytes { view.stringEquals(utf8: $0) })
      if !expected.isEmpty { expect(!expected.dropLast().withUnsafeBytes { view.stringEquals(utf8: $0) }) }
    }
  }

  @Test func literals() throws {
    try withJSON(#"["push","p\u0075sh",7]"#) { view in
      expectEqual(view.elements.map { $0.stringEquals("push") }, [true, true, false])
      expectEqual(view.elements.map { $0.stringEquals("pusH") }, [false, false, false])
      expectEqual(view.elements.map { $0.stringEquals("pus") }, [false, false, false])
      expectEqual(view.element(at: 2)?.string, nil)
      expectEqual(view.element(at: 2)?.withDecodedUTF8 { $0.count }, nil)
    }
  }

  @Test func stringsAreOrderedByCodePoint() throws {
    // Unpaired surrogates sort by their code points, between U+D7FF and U+E000.
    let ascending = [
      #""""#, #""\u0000""#, #""A""#, #""Aa""#, #""\u0041b""#, #""B""#, #""é""#, #""\ud7ff""#, #""\ud800""#,
      #""\ud800x""#,
      #""\udfff""#, #""\ue000""#, #""\uffff""#, #""😀""#, #""\ud83d\ude01""#, #""\udbff\udfff""#,
    ]
    for (i, a) in ascending.enumerated() {
      for (j, b) in ascending.enumerated() {
        try withJSON(a) { a in
          try withJSON(b) { b in
            expectEqual(a.compareString(b), (i - j).signum(), "\(i) \(j)")
            expectEqual(a.equals(b), (i == j))
          }
        }
      }
    }
  }

  @Test func longStringWithEscapes() throws {
    let part = "line of a text with a quote \" and an é\n"
    let text = String(repeating: part, count: 3000)
    var buffer = ByteBuffer()
    buffer.appendJSONString(text)
    try withJSON(buffer.array) { expectEqual($0.string, text) }
  }
}
