import FeedJSON
import FeedQuery
import TestSupport
import Testing

@testable import FeedModel

/// The order of keys, compared with a direct comparison of values.
struct SortOrderTests {
  static let values: [String?] = [
    nil, "null", "false", "true", "-1e300", "-12345678.5", "-2", "-1", "-0.5", "0", "-0", "1e-300", "0.5", "1", "1.0",
    "100e-2", "2", "9", "10", "99", "100", "1234567890123", "1234567890124", "1e300", "\"\"", "\"\\u0000\"",
    "\"\\u0000a\"", "\"a\"", "\"a\\u0000\"", "\"aa\"", "\"aaaaaaaaaaaaaaaaaaa\"", "\"aaaaaaaaaaaaaaaaaab\"", "\"b\"",
    "\"é\"", "\"\\u00e9\"", "\"￿\"", "\"😀\"", "\"\\ud83d\\ude00\"", "[]", "[1]", "{}", "{\"a\":1}",
  ]

  private static func element(_ values: String?...) -> String {
    let members = zip(["a", "b"], values).compactMap { name, value in value.map { "\"\(name)\":\($0)" } }
    return "{" + members.joined(separator: ",") + "}"
  }

  private func key(_ text: String, _ terms: [CollectionRules.Term]) -> [UInt8] {
    let order = SortOrder(terms: terms.map { .init(path: $0.by, descending: $0.descending) })
    var buffer = ByteBuffer()
    withView(text) { order.appendKey(of: $0, to: &buffer) }
    return Array(SortOrder.key(0, in: buffer.bytes))
  }

  private func compare(_ a: [UInt8], _ b: [UInt8]) -> Int {
    a.withUnsafeBytes { a in b.withUnsafeBytes { b in Int(SortOrder.compare(a, b)).signum() } }
  }

  private func prefix(_ key: [UInt8]) -> UInt64 { key.withUnsafeBytes { SortOrder.prefix(of: $0) } }

  @Test(arguments: [false, true]) func keysOrderEveryPairOfValues(descending: Bool) {
    let terms = [CollectionRules.Term(by: "$.a", descending: descending)]
    let bin = CollectionRules.Bin(name: "x", sort: terms)
    let texts = Self.values.map { Self.element($0) }
    let keys = texts.map { key($0, terms) }
    for (a, x) in zip(texts, keys) {
      for (b, y) in zip(texts, keys) {
        expectEqual(compare(x, y), bin.compare(a, b).signum(), "\(a) \(b)")
        expect(x == y || !y.starts(with: x), "the key of \(b) begins with that of \(a)")
        if prefix(x) != prefix(y) { expectEqual((prefix(x) < prefix(y)), (compare(x, y) < 0), "\(a) \(b)") }
        if x.count <= 8 && prefix(x) == prefix(y) { expectEqual(x, y, "\(a) \(b)") }
      }
    }
  }

  @Test(arguments: 1...4) func keysOrderRandomPairsOfElements(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    let terms = [
      CollectionRules.Term(by: "$.a", descending: seed & 1 == 1),
      CollectionRules.Term(by: "$.b", descending: seed & 2 == 2),
    ]
    let bin = CollectionRules.Bin(name: "x", sort: terms)
    let small = ["1", "1.0", "2", "\"a\"", "null", nil, "[]", "{}"]
    for _ in 0..<1500 {
      let (a, b) = (
        Self.element(small.randomElement(using: &random)!, Self.values.randomElement(using: &random)!),
        Self.element(small.randomElement(using: &random)!, Self.values.randomElement(using: &random)!)
      )
      let (x, y) = (key(a, terms), key(b, terms))
      expectEqual(compare(x, y), bin.compare(a, b).signum(), "seed \(seed): \(a) \(b)")
      expect(x == y || !y.starts(with: x), "seed \(seed): \(a) \(b)")
    }
  }

  @Test func keysAreFoundByIndex() {
    let orders = ["$.a", "$.b", "$.c"].map { path in
      SortOrder(terms: [.init(path: try! SingularPath(parsing: path), descending: false)])
    }
    var all = ByteBuffer()
    var alone: [[UInt8]] = []
    withView(#"{"a":"a string that is longer","c":1}"#) { view in
      for order in orders {
        order.appendKey(of: view, to: &all)
        var buffer = ByteBuffer()
        order.appendKey(of: view, to: &buffer)
        alone.append(Array(buffer.bytes.dropFirst(4)))
      }
    }
    expectEqual((0..<3).map { Array(SortOrder.key($0, in: all.bytes)) }, alone)
    expectEqual(alone[1], [0xFF], "an absent value must be last")
  }

  @Test func keysEndAtALimit() throws {
    let term = SortOrder.Term(path: try SingularPath(parsing: "$.a"), descending: false)
    let order = SortOrder(terms: [term, term, term])
    withView(#"{"a":"abc\u0000defgh"}"#) { view in
      var whole = ByteBuffer()
      order.appendKey(of: view, to: &whole)
      let key = Array(SortOrder.key(0, in: whole.bytes))
      for limit in 0...whole.count {
        var buffer = ByteBuffer()
        var room = SortOrder.Room(bytes: limit, steps: .max)
        expectEqual(order.appendKey(of: view, to: &buffer, within: &room), limit == whole.count, "at most \(limit)")
        expectEqual(Array(SortOrder.key(0, in: buffer.bytes)), Array(key.prefix(max(0, limit - 4))), "at most \(limit)")
      }
    }
  }
}
