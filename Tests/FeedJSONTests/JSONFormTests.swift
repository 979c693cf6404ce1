import TestSupport
import Testing

@testable import FeedJSON

/// A text that is scanned by its form has the tokens of a whole scan; every other text is left to that.
@Suite("Scanning by form") struct JSONFormTests {
  /// Texts before, between and after an integer and a value, or a value and an integer.
  private static let forms: [(pieces: [String], integerIsFirst: Bool)] = [
    ([#"{"jsonrpc":"2.0","id":"#, #","method":"update","params":{"feed":"f","element":"#, "}}"], true),
    ([#"{"id":"#, #", "params": {"element": "#, #", "feed": "f"} , "x":[1,[2],{"y":null}]}"#], true),
    ([#"{"params":{"element":"#, #"},"id":"#, "}"], false),
    ([#"{"a":[1,{"b":"#, #"},3],"id": "#, #" ,"z":true}"#], false),
    ([#"{"n":"#, #","v":"#, "}"], true),
  ]
  private static let integers = ["0", "7", "123", "123456789012345678"]
  private static let others = ["-1", "01", "1.5", "1e3", "", "x", "1234567890123456789", "\"a\"", "1 "]
  private static let values = [
    "{}", "[]", #"{"id":1,"t":"text that is longer than a word"}"#, #"{"a":{"b":[1,2,{"c":"\u0041é"}]}}"#, "5", "\"s\"",
    "true",
    #"{ "spaced" : [ 1 , 2 ] }"#, "-1.5e3", "[[[[]]]]",
  ]
  private static let wrong = [
    "", "{", "}", #"{"a":1}}"#, "1,2", #""a"#, #"{"a":1},"b":{"c":2}"#, "nul", " {}", "{} ", "[1,]", "\u{1}",
  ]

  private struct Scan: Equatable {
    let tokens: [[UInt32]]
    /// Whether the text is a container that is marked as compact.
    let compact: [Bool]

    init(_ view: JSONView) {
      let all = (0..<Int(view.token.pointee.span)).map { view.token[$0] }
      tokens = all.map { [$0.offset, $0.length, $0.span, $0.info & ~JSONToken.hasSpaces] }
      compact = all.map { $0.info & JSONToken.hasSpaces == 0 }
    }
  }

  private func text(_ form: (pieces: [String], integerIsFirst: Bool), _ integer: String, _ value: String) -> [UInt8] {
    let (first, second) = form.integerIsFirst ? (integer, value) : (value, integer)
    return utf8(form.pieces[0] + first + form.pieces[1] + second + form.pieces[2])
  }

  /// Records the form of a text with this integer and value.
  private func record(
    _ form: (pieces: [String], integerIsFirst: Bool), _ integer: String, _ value: String
  ) throws -> JSONForm {
    let bytes = text(form, integer, value)
    var scanner = JSONScanner()
    var known = JSONForm()
    let start = form.pieces[0].utf8.count
    let places =
      form.integerIsFirst
      ? (start, start + integer.utf8.count + form.pieces[1].utf8.count)
      : (start + value.utf8.count + form.pieces[1].utf8.count, start)
    try bytes.withUnsafeBytes {
      let object = try scanner.scan($0)
      let tokens = (0..<scanner.tokenCount).map { JSONView(base: object.base, token: object.token + $0) }
      let value = try require(tokens.first { $0.byteOffset == places.1 })
      let integer = try require(tokens.first { $0.byteOffset == places.0 })
      known.record(object, value: value, integer: integer)
    }
    return known
  }

  @Test("the tokens are those of a whole scan", arguments: forms.indices)
  func tokens(number: Int) throws {
    let form = Self.forms[number]
    for (integer, value) in [("5", "{}"), ("1234", #"{"a":[1,2,3]}"#), ("99", "true")] {
      var known = try record(form, integer, value)
      var byForm = JSONScanner()
      var whole = JSONScanner()
      _ = try utf8("[1,2,3]").withUnsafeBytes { try byForm.scan($0) }
      for integer in Self.integers {
        for value in Self.values {
          let bytes = text(form, integer, value)
          try bytes.withUnsafeBytes { bytes in
            for kept in [0, 2] {
              let scanned = byForm.scan(bytes, after: kept, like: &known)
              let found = try require(scanned, "\(integer) \(value)")
              let expected = Scan(try whole.scan(bytes))
              let scan = Scan(found)
              expect(scan.tokens == expected.tokens && byForm.tokenCount == kept + scan.tokens.count)
              // Containers around the value may be marked as not compact.
              expect(zip(scan.compact, expected.compact).allSatisfy { !$0 || $1 })
            }
          }
        }
      }
    }
  }

  @Test("texts of another form, and invalid ones, are left to a whole scan", arguments: forms.indices)
  func refused(number: Int) throws {
    let form = Self.forms[number]
    var known = try record(form, "42", #"{"a":1}"#)
    var scanner = JSONScanner()
    _ = try utf8("[1,2,3]").withUnsafeBytes { try scanner.scan($0) }
    func scans(_ bytes: [UInt8]) -> Bool { bytes.withUnsafeBytes { scanner.scan($0, after: 0, like: &known) != nil } }
    for other in Self.others { expect(!scans(text(form, other, "{}")), "\(other)") }
    for value in Self.wrong { expect(!scans(text(form, "1", value)), "\(value)") }
    let right = text(form, "42", #"{"a":1}"#)
    expect(scans(right))
    for place in right.indices {
      var bytes = right
      bytes[place] ^= 1
      var whole = JSONScanner()
      let expected = bytes.withUnsafeBytes { bytes in (try? whole.scan(bytes)).map { Scan($0).tokens } }
      let found = bytes.withUnsafeBytes { bytes in scanner.scan(bytes, after: 0, like: &known).map { Scan($0).tokens } }
      if let found { expectEqual(found, expected, "byte \(place)") }
    }
    for count in 0..<right.count { expect(!scans(Array(right.prefix(count)))) }
  }

  @Test("nesting is limited as in a whole scan")
  func depth() throws {
    var scanner = JSONScanner(maxDepth: 4)
    var form = try record(Self.forms[0], "1", "1")
    _ = try utf8("[1,2,3]").withUnsafeBytes { try scanner.scan($0) }
    for (value, isAccepted) in [("[]", true), ("[[]]", true), ("[[[]]]", false)] {
      let bytes = text(Self.forms[0], "1", value)
      let byForm = bytes.withUnsafeBytes { scanner.scan($0, after: 0, like: &form) != nil }
      let whole = bytes.withUnsafeBytes { (try? scanner.scan($0)) != nil }
      expect(byForm == isAccepted && whole == isAccepted)
    }
  }

  @Test("a text beyond the tape's room moves the tape or is left to a whole scan")
  func growth() throws {
    var form = try record(Self.forms[0], "1", "1")
    var scanner = JSONScanner()
    _ = try utf8("[1,2,3]").withUnsafeBytes { try scanner.scan($0) }
    for count in 1..<300 {
      let value = "[" + (0..<count).map { "\($0)" }.joined(separator: ",") + "]"
      let bytes = text(Self.forms[0], "7", value)
      try bytes.withUnsafeBytes { bytes in
        guard let found = scanner.scan(bytes, after: 0, like: &form) else {
          _ = try scanner.scan(bytes)
          return
        }
        var whole = JSONScanner()
        let expected = Scan(try whole.scan(bytes)).tokens
        expectEqual(Scan(found).tokens, expected)
      }
    }
  }

  @Test("a form of nothing matches nothing")
  func unknown() throws {
    var scanner = JSONScanner()
    let bytes = utf8("{}")
    _ = try bytes.withUnsafeBytes { try scanner.scan($0) }
    var form = JSONForm()
    let isScanned = bytes.withUnsafeBytes { scanner.scan($0, after: 0, like: &form) != nil }
    expect(!isScanned)
  }
}
