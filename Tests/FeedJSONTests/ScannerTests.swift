import FeedJSON
import TestSupport
import Testing

/// Accepted and refused texts, compared with a fixed list and with the reference.
struct ScannerTests {
  static let accepted = [
    "0", "-0", "1", "-1.5e+10", "1E-2", "0e1", "0.10", "123456789012345678901234567890", "true", "false", "null",
    "\"\"",
    "\"a\"", "[]", "{}", " [ ] ", "\t{\r\n}\n", "[[]]", "[{},[],\"\"]", "[1,2 , 3]", "{\"\":0}",
    "{\"a\":{\"a\":[null]}}",
    "{\"a\":1,\"a\":2}", #"["\u0000\"\\\/\b\f\n\r\t\uABcd"]"#, #"["\ud83d\ude00\ud800"]"#, "[\"\u{7F}é日😀\u{10FFFF}\"]",
    "[true,false,null]", "{\"a\" : \"b\" }", "\"\u{2028}\"", "[-0.0]", "[ 1\n]",
  ]

  @Test(arguments: accepted)
  func accepts(_ text: String) throws {
    expect(scanFailure(text) == nil)
    let bytes = Array(text.utf8)
    try expectRoundTrip(bytes)
    let value = try withJSON(bytes) { ReferenceValue($0) }
    expectEqual(value, ReferenceReader.read(bytes))
  }

  /// A text, its error, and the offset of the error.
  static let refused: [(String, JSONError.Kind, Int)] = [
    ("", .empty, 0), (" \n", .empty, 2), ("[", .truncated, 1), ("{", .truncated, 1), ("[1", .truncated, 2),
    ("[1,", .truncated, 3), ("[1,]", .unexpectedByte, 3), ("[,1]", .unexpectedByte, 1), ("[1,,2]", .unexpectedByte, 3),
    ("[1 2]", .unexpectedByte, 3), ("]", .unexpectedByte, 0), ("}", .unexpectedByte, 0), ("[}", .unexpectedByte, 1),
    ("{]", .unexpectedByte, 1), ("[1}", .unexpectedByte, 2), ("{\"a\":1]", .unexpectedByte, 6),
    ("{\"a\"}", .unexpectedByte, 4), ("{\"a\" 1}", .unexpectedByte, 5), ("{\"a\":}", .unexpectedByte, 5),
    ("{\"a\":1,}", .unexpectedByte, 7), ("{a:1}", .unexpectedByte, 1), ("{1:1}", .unexpectedByte, 1),
    ("{\"a\":", .truncated, 5), ("{\"a\"", .truncated, 4), ("{\"a", .truncated, 3), ("{\"a\":1", .truncated, 6),
    ("1 2", .trailingBytes, 2), ("{}{}", .trailingBytes, 2), ("[]]", .trailingBytes, 2), ("1,", .trailingBytes, 1),
    ("[],", .trailingBytes, 2), ("01", .invalidNumber, 1), ("[-01]", .invalidNumber, 3), ("1.", .truncated, 2),
    ("[1.]", .invalidNumber, 3), ("[.5]", .unexpectedByte, 1), ("[-]", .invalidNumber, 2), ("-", .truncated, 1),
    ("[1e]", .invalidNumber, 3), ("[1e+]", .invalidNumber, 4), ("1e", .truncated, 2), ("[+1]", .unexpectedByte, 1),
    ("[1.2.3]", .unexpectedByte, 4), ("[0x10]", .unexpectedByte, 2), ("[NaN]", .unexpectedByte, 1),
    ("tru", .truncated, 3), ("[trup]", .unexpectedByte, 4), ("nul", .truncated, 3), ("[nulll]", .unexpectedByte, 5),
    ("falsy", .unexpectedByte, 4), ("True", .unexpectedByte, 0), ("\"", .truncated, 1), ("\"a", .truncated, 2),
    ("\"\\", .truncated, 2), ("\"\\\"", .truncated, 3), ("[\"\\u12\"]", .invalidEscape, 2), ("\"\\u123", .truncated, 6),
    ("[\"\\x\"]", .invalidEscape, 2), ("[\"\\u12g4\"]", .invalidEscape, 2), ("[\"\\'\"]", .invalidEscape, 2),
    ("[\"a\tb\"]", .invalidString, 3), ("\"\n\"", .invalidString, 1), ("['a']", .unexpectedByte, 1),
    ("\u{FEFF}[]", .unexpectedByte, 0), ("[\u{A0}1]", .unexpectedByte, 1), ("[1\u{0C}]", .unexpectedByte, 2),
    ("[1]\u{0}", .trailingBytes, 3), ("/**/1", .unexpectedByte, 0), ("[1]//", .trailingBytes, 3),
  ]

  @Test(arguments: refused.indices)
  func refuses(_ index: Int) {
    let (text, kind, offset) = Self.refused[index]
    expectEqual(scanFailure(text), JSONError(offset: offset, kind: kind), "\(text)")
    expect(ReferenceReader.read(Array(text.utf8)) == nil, "\(text)")
  }

  /// Plain bytes are skipped in blocks. A byte that is not plain is found wherever it is, whatever follows it.
  @Test func stringsEndAtEveryOffset() {
    let stops: [(bytes: [UInt8], kind: JSONError.Kind?)] = [
      (Array("\\n".utf8), nil), (Array("é".utf8), nil), ([0x7F], nil), ([0x1F], .invalidString), ([0x80], .invalidUTF8),
      (Array("\\x".utf8), .invalidEscape), ([0x22], .trailingBytes),
    ]
    for length in [0, 1, 7, 8, 9, 17, 63, 64, 65, 100, 200, 300] {
      for place in 0...length {
        for stop in stops {
          let before = [UInt8](repeating: 0x78, count: place)
          let bytes = [0x22] + before + stop.bytes + [UInt8](repeating: 0x79, count: length - place) + [0x22]
          let expected = stop.kind.map { JSONError(offset: stop.bytes == [0x22] ? place + 2 : place + 1, kind: $0) }
          if scanFailure(bytes) != expected { Issue.record("\(stop.bytes) at \(place) of \(length)") }
        }
      }
    }
  }

  @Test func errorMessagesAreDistinct() {
    let messages = (0..<64).compactMap { JSONError.Kind(rawValue: $0) }.map { JSONError(offset: 0, kind: $0).message }
    expectEqual(messages.count, 10)
    expectEqual(Set(messages).count, messages.count)
  }

  /// Uses one scanner for all texts, so that leftovers of an earlier text on the tape would be detected.
  @Test func agreesWithTheReference() throws {
    var scanner = JSONScanner()
    for seed in 0..<600 as Range<UInt64> {
      var generator = TextGenerator(seed: seed)
      let text = generator.text(size: 40)
      let expected = try require(ReferenceReader.read(text), "seed \(seed)")
      let value = try text.withUnsafeBytes { ReferenceValue(try scanner.scan($0)) }
      expectEqual(value, expected, "seed \(seed)")
      try expectRoundTrip(text)
    }
  }

  @Test func refusesTruncatedContainers() {
    for seed in 0..<60 as Range<UInt64> {
      var generator = TextGenerator(seed: seed)
      var text = generator.text(size: 20)
      while text.last.map({ $0 <= 0x20 }) == true { text.removeLast() }
      for length in 0..<text.count {
        let failure = scanFailure(Array(text[..<length]))
        expect(failure != nil, "seed \(seed), length \(length)")
      }
    }
  }
}

/// Strict UTF-8 in strings, compared with the standard library.
struct UTF8Tests {
  /// The ends of all byte ranges of RFC 3629, and their neighbours.
  static let interesting: [UInt8] = [
    0x00, 0x22, 0x41, 0x5C, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED,
    0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF,
  ]

  private static func check(_ sequence: [UInt8]) {
    // Quotation mark, reverse solidus and control characters have their own tests.
    guard sequence.allSatisfy({ $0 >= 0x20 && $0 != 0x22 && $0 != 0x5C }) else { return }
    let isValid = String(validating: sequence, as: UTF8.self) != nil
    for padding in [0, 9] {
      let bytes = [0x22] + sequence + [0x22] + [UInt8](repeating: 0x20, count: padding)
      let failure = scanFailure(bytes)
      if isValid != (failure == nil) { Issue.record("\(sequence): \(String(describing: failure))") }
      if let failure { expectEqual(failure.kind, .invalidUTF8) }
    }
  }

  @Test func everyPairOfBytes() {
    for first in UInt8(0x7F)...0xFF {
      for second in UInt8(0x20)...0xFF { Self.check([first, second]) }
    }
  }

  @Test func everySequenceOfInterestingBytes() {
    for a in Self.interesting where a >= 0xE0 {
      for b in Self.interesting {
        for c in Self.interesting {
          Self.check([a, b, c])
          for d in [0x41, 0x7F, 0x80, 0xBF, 0xC0] as [UInt8] { Self.check([a, b, c, d]) }
        }
      }
    }
  }

  @Test func truncatedSequences() {
    for character in ["é", "日", "😀"] {
      let bytes = [0x22] + Array(character.utf8)
      for length in 2..<bytes.count { expectEqual(scanFailure(Array(bytes[..<length]))?.kind, .invalidUTF8) }
    }
  }

  @Test func nonASCIIOutsideStringsIsRefused() {
    expectEqual(scanFailure("[é]"), JSONError(offset: 1, kind: .unexpectedByte))
    expectEqual(scanFailure([0xFF, 0xFE]), JSONError(offset: 0, kind: .unexpectedByte))
  }
}

/// Texts with a few changed bytes: the scanner agrees with the reference, and reads nothing outside the text.
struct ScannerMutationTests {
  @Test(arguments: 0..<8)
  func agreesWithTheReference(_ part: UInt64) throws {
    var accepted = 0
    for seed in (part * 150)..<(part * 150 + 150) {
      var random = SeededRandom(seed: seed)
      var generator = TextGenerator(seed: seed)
      let text = generator.text(size: 8)
      for _ in 0..<12 {
        let mutated = Mutation.of(text, &random)
        let expected = ReferenceReader.read(mutated)
        let failure = scanFailure(mutated)
        expect((failure == nil) == (expected != nil), "seed \(seed): \(mutated)")
        guard failure == nil, let expected else { continue }
        accepted += 1
        try expectEqual(withJSON(mutated) { ReferenceValue($0) }, expected, "seed \(seed)")
      }
    }
    expect(accepted > 50, "the changes leave enough texts valid to be worth comparing")
  }

  @Test func randomBytesDoNotTrap() {
    for seed in 0..<400 as Range<UInt64> {
      var random = SeededRandom(seed: seed)
      let noise = (0..<Int(random.next() % 64)).map { _ in
        random.next() & 3 == 0 ? UInt8(truncatingIfNeeded: random.next()) : Mutation.bytes[Int(random.next() % 24)]
      }
      expect((scanFailure(noise) == nil) == (ReferenceReader.read(noise) != nil), "seed \(seed): \(noise)")
    }
  }
}
