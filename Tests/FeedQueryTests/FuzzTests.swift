import FeedJSON
import TestSupport
import Testing

@testable import FeedQuery

/// Malformed texts: the parsers return, and the offsets of errors are in the text.
struct FuzzTests {
  private static let pieces = [
    "$", "@", ".", "..", "[", "]", "(", ")", "?", "*", ":", ",", "'", "\"", "\\", "\\u", "d800", "0", "1", "-",
    "9007199254740992", "1e", "+",
    "==", "!=", "<", ">=", "=", "!", "&&", "||", "&", "|", " ", "\n", "a", "é", "😀", "\u{0}", "true", "null", "count(",
    "length(", "match(",
    "value(", "search(", "foo(", "{", "}", "{2}", "{1,", "\\p{L}", "[^", "a-z", "^", "#", "_",
  ]

  private enum Kind: CaseIterable {
    case path, filter, singular, regexp

    func parse(_ text: String) throws(QueryError) {
      switch self {
      case .path: _ = try JSONPath(parsing: text)
      case .filter: _ = try Filter(parsing: text)
      case .singular: _ = try SingularPath(parsing: text)
      case .regexp: _ = try IRegexp(parsing: text)
      }
    }
  }

  private func check(_ text: String) {
    for kind in Kind.allCases {
      do throws(QueryError) {
        try kind.parse(text)
      } catch {
        expect((0...text.utf8.count).contains(error.offset), "\(text): \(error)")
        expect(!error.message.isEmpty)
      }
    }
  }

  @Test(arguments: 0..<8 as Range<UInt64>) func randomTokens(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    for _ in 0..<1_000 {
      let count = random.next() % 14
      check((0..<count).map { _ in Self.pieces[Int(random.next() % UInt64(Self.pieces.count))] }.joined())
    }
  }

  /// Valid texts with one or two bytes replaced, removed or duplicated.
  @Test(arguments: 0..<8 as Range<UInt64>) func mutatedPaths(seed: UInt64) throws {
    var texts = RandomTexts(seed: seed)
    for _ in 0..<300 {
      var bytes = Array((texts.number(below: 2) == 0 ? texts.path() : texts.condition()).utf8)
      for _ in 0...texts.number(below: 2) where !bytes.isEmpty {
        let place = texts.number(below: bytes.count)
        switch texts.number(below: 3) {
        case 0: bytes[place] = UInt8(texts.number(below: 128))
        case 1: bytes.remove(at: place)
        default: bytes.insert(bytes[texts.number(below: bytes.count)], at: place)
        }
      }
      check(String(decoding: bytes, as: UTF8.self))
    }
  }

  /// Every prefix of a valid text, so that the text ends inside every rule of the grammar.
  @Test(arguments: 0..<4 as Range<UInt64>) func truncatedPaths(seed: UInt64) {
    var texts = RandomTexts(seed: seed)
    for _ in 0..<15 {
      let bytes = Array(texts.path().utf8)
      for count in 0..<bytes.count { check(String(decoding: bytes[..<count], as: UTF8.self)) }
    }
  }
}
