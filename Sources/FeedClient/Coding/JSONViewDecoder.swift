import FeedJSON

/// Decodes values from JSON.
enum JSONViewDecoder {
  /// Decodes the JSON text of an element.
  /// - Throws: `DecodingError` if the text does not match the type.
  static func decode<T: Decodable>(_ type: T.Type, from text: [UInt8]) throws -> T {
    var scanner = JSONScanner(maxDepth: 10_100)
    return try text.withUnsafeBytes { bytes in try T(from: ViewDecoder(view: try scanner.scan(bytes), codingPath: [])) }
  }
}

/// The member that an encoder writes for a superclass, unless it is given another one.
private enum SuperKey: CodingKey {
  case `super`
}

private struct ViewDecoder: Decoder, SingleValueDecodingContainer {
  let view: JSONView
  let codingPath: [any CodingKey]

  var userInfo: [CodingUserInfoKey: Any] { [:] }

  func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
    guard view.kind == .object else { throw mismatch([String: String].self) }
    return KeyedDecodingContainer(Keyed<Key>(view: view, codingPath: codingPath))
  }

  func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
    guard view.kind == .array else { throw mismatch([String].self) }
    return List(items: Array(view.elements), codingPath: codingPath)
  }

  func singleValueContainer() -> any SingleValueDecodingContainer { self }

  func mismatch(_ type: Any.Type) -> DecodingError {
    .typeMismatch(type, .init(codingPath: codingPath, debugDescription: "expected \(type), found \(view.kind)"))
  }

  func decodeNil() -> Bool { view.isNull }

  func decode(_ type: Bool.Type) throws -> Bool {
    guard let value = view.bool else { throw mismatch(type) }
    return value
  }

  func decode(_ type: String.Type) throws -> String {
    guard let value = view.string else { throw mismatch(type) }
    return value
  }

  /// Refuses a number that is too large for the type.
  private func number<T: BinaryFloatingPoint & LosslessStringConvertible>(_ type: T.Type) throws -> T {
    guard view.kind == .number, let value = T(String(decoding: view.text, as: UTF8.self)), value.isFinite else {
      throw mismatch(type)
    }
    return value
  }

  /// Decodes integers of all types. Also accepts other notations, such as `1.0` and `1e3`, within the range of `Int`.
  func decode<T: FixedWidthInteger & Decodable>(_ type: T.Type) throws -> T {
    guard view.kind == .number else { throw mismatch(type) }
    let text = String(decoding: view.text, as: UTF8.self)
    guard let value = T(text) ?? view.int.flatMap({ T(exactly: $0) }) else { throw mismatch(type) }
    return value
  }

  func decode(_ type: Double.Type) throws -> Double { try number(type) }
  func decode(_ type: Float.Type) throws -> Float { try number(type) }
  func decode<T: Decodable>(_ type: T.Type) throws -> T { try T(from: self) }

  private struct Keyed<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let view: JSONView
    let codingPath: [any CodingKey]

    private func find(_ key: any CodingKey) -> JSONView? {
      var name = key.stringValue
      return name.withUTF8 { view.member(utf8: UnsafeRawBufferPointer($0)) }
    }

    private func decoder(_ key: any CodingKey) throws -> ViewDecoder {
      guard let value = find(key) else {
        throw DecodingError.keyNotFound(
          key, .init(codingPath: codingPath, debugDescription: "no member \"\(key.stringValue)\""))
      }
      return ViewDecoder(view: value, codingPath: codingPath + [key])
    }

    var allKeys: [Key] { view.members.compactMap { $0.key.string.flatMap(Key.init(stringValue:)) } }
    func contains(_ key: Key) -> Bool { find(key) != nil }
    func decodeNil(forKey key: Key) throws -> Bool { try decoder(key).decodeNil() }
    func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T { try T(from: decoder(key)) }

    func nestedContainer<Nested: CodingKey>(
      keyedBy type: Nested.Type, forKey key: Key
    ) throws -> KeyedDecodingContainer<Nested> { try decoder(key).container(keyedBy: type) }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
      try decoder(key).unkeyedContainer()
    }

    func superDecoder() throws -> any Decoder { try decoder(SuperKey.super) }
    func superDecoder(forKey key: Key) throws -> any Decoder { try decoder(key) }
  }

  private struct List: UnkeyedDecodingContainer {
    let items: [JSONView]
    let codingPath: [any CodingKey]
    private(set) var currentIndex = 0

    init(items: [JSONView], codingPath: [any CodingKey]) { (self.items, self.codingPath) = (items, codingPath) }

    var count: Int? { items.count }
    var isAtEnd: Bool { currentIndex == items.count }

    private mutating func next() throws -> ViewDecoder {
      guard !isAtEnd else {
        throw DecodingError.valueNotFound(
          Any.self, .init(codingPath: codingPath, debugDescription: "the array has only \(items.count) items"))
      }
      defer { currentIndex += 1 }
      return ViewDecoder(view: items[currentIndex], codingPath: codingPath)
    }

    mutating func decodeNil() throws -> Bool {
      guard !isAtEnd, items[currentIndex].isNull else { return false }
      currentIndex += 1
      return true
    }

    mutating func decode<T: Decodable>(_ type: T.Type) throws -> T { try T(from: next()) }

    mutating func nestedContainer<Nested: CodingKey>(
      keyedBy type: Nested.Type
    ) throws -> KeyedDecodingContainer<Nested> { try next().container(keyedBy: type) }

    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer { try next().unkeyedContainer() }
    mutating func superDecoder() throws -> any Decoder { try next() }
  }
}
