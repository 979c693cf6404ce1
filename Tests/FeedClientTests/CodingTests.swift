import FeedJSON
import TestSupport
import Testing

@testable import FeedClient

/// An element of the tests of the client.
struct Item: Codable, Equatable {
  var id: Int
  var text: String
  var weight: Double?
  var tags: [String]?
}

@Suite("coding elements") struct CodingTests {
  private func encode(_ value: some Encodable) throws -> String {
    var text = ByteBuffer()
    try JSONTextEncoder.encode(value, to: &text)
    return String(decoding: text.bytes, as: UTF8.self)
  }

  @Test("values are encoded as compact JSON and decoded again") func coding() throws {
    let item = Item(id: 1, text: "a \"b\"\n", weight: 1.5, tags: ["x", "y"])
    try expectEqual(encode(item), "{\"id\":1,\"text\":\"a \\\"b\\\"\\n\",\"weight\":1.5,\"tags\":[\"x\",\"y\"]}")
    try expectEqual(encode([Item(id: 2, text: "")]), "[{\"id\":2,\"text\":\"\"}]")
    try expectEqual(encode(["a": [1: true]]), "{\"a\":{\"1\":true}}")
    try expectEqual(encode([nil, 3]), "[null,3]")
    try expectEqual(encode("text"), "\"text\"")
    #expect(throws: EncodingError.self) { try encode(Double.nan) }
    let row = Row(element: Array(try encode(item).utf8))
    try expectEqual(row.decode(Item.self), item)
    try expectEqual(Row(element: Array("[null,1.0,1e2]".utf8)).decode([Int?].self), [nil, 1, 100])
    // More digits than a double has.
    let large = Row(element: Array("[9007199254740993.0,9.007199254740993e15]".utf8))
    try expectEqual(large.decode([Int].self), [9_007_199_254_740_993, 9_007_199_254_740_993])
    #expect(throws: DecodingError.self) { try Row(element: Array("{\"id\":\"x\"}".utf8)).decode(Item.self) }
    #expect(throws: DecodingError.self) { try Row(element: Array("{\"id\":1}".utf8)).decode(Item.self) }
  }

  private class Base: Codable {
    var id: Int
    init(id: Int) { self.id = id }
  }

  /// Shares its object with its superclass.
  private final class Flat: Base {
    var tags: [String]
    private enum CodingKeys: CodingKey { case tags }

    init(id: Int, tags: [String]) {
      self.tags = tags
      super.init(id: id)
    }

    required init(from decoder: any Decoder) throws {
      tags = try decoder.container(keyedBy: CodingKeys.self).decode([String].self, forKey: .tags)
      try super.init(from: decoder)
    }

    override func encode(to encoder: any Encoder) throws {
      try super.encode(to: encoder)
      var members = encoder.container(keyedBy: CodingKeys.self)
      try members.encode(tags, forKey: .tags)
    }
  }

  /// Has its superclass in a member.
  private final class Nested: Base {
    private enum CodingKeys: CodingKey { case tags }

    override init(id: Int) { super.init(id: id) }

    required init(from decoder: any Decoder) throws {
      try super.init(from: decoder.container(keyedBy: CodingKeys.self).superDecoder())
    }

    override func encode(to encoder: any Encoder) throws {
      var members = encoder.container(keyedBy: CodingKeys.self)
      try members.encode([Int](), forKey: .tags)
      try super.encode(to: members.superEncoder())
    }
  }

  /// Writes its items through two containers.
  private struct Halves: Encodable {
    func encode(to encoder: any Encoder) throws {
      var first = encoder.unkeyedContainer()
      try first.encode(1)
      var second = encoder.unkeyedContainer()
      expectEqual(second.count, 1)
      try second.encode("b")
      expectEqual(second.count, 2)
    }
  }

  @Test("members that several types of one value encode are all in its object") func inheritance() throws {
    let flat = Flat(id: 1, tags: ["x"])
    try expectEqual(encode(flat), "{\"id\":1,\"tags\":[\"x\"]}")
    let copy = try Row(element: Array(encode(flat).utf8)).decode(Flat.self)
    expectEqual([copy.id, copy.tags.count], [1, 1])
    let nested = Nested(id: 2)
    try expectEqual(encode(nested), "{\"tags\":[],\"super\":{\"id\":2}}")
    try expectEqual(Row(element: Array(encode(nested).utf8)).decode(Nested.self).id, 2)
    #expect(throws: DecodingError.self) { try Row(element: Array("{\"id\":2,\"tags\":[]}".utf8)).decode(Nested.self) }
    try expectEqual(encode([Halves()]), "[[1,\"b\"]]")
  }

  @Test("numbers that a type cannot have are not decoded") func range() throws {
    let row = Row(element: Array("[1e39]".utf8))
    try expectEqual(row.decode([Double].self), [1e39])
    #expect(throws: DecodingError.self) { try row.decode([Float].self) }
    #expect(throws: DecodingError.self) { try row.decode([Int].self) }
    #expect(throws: DecodingError.self) { try Row(element: Array("[1e400]".utf8)).decode([Double].self) }
  }
}
