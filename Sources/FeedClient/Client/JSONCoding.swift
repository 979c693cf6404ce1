import FeedJSON

/// Encodes values as compact JSON text. Omits nil optionals from objects, as `Codable` does.
enum JSONTextEncoder {
  /// - Throws: errors of the value's `encode(to:)`, or `EncodingError` for a number that JSON cannot represent.
  static func encode(_ value: some Encodable, to out: inout ByteBuffer) throws {
    let slot = Slot()
    try value.encode(to: TreeEncoder(slot: slot, codingPath: []))
    slot.write(to: &out)
  }
}

/// A value in the text that is being built.
private final class Slot {
  enum Content: Equatable {
    case scalar(String), string(String), array, object
  }

  var content = Content.scalar("null")
  /// The items of an array, whose names are empty, or the members of an object.
  private var items: [(name: String, slot: Slot)] = []
  var count: Int { items.count }

  /// Makes the content an array or an object, unless it is one: a value may write its members through several containers, such as
  /// those of its superclass and its own.
  func begin(_ container: Content) { if content != container { (content, items) = (container, []) } }

  func add(_ name: String = "", to container: Content) -> Slot {
    begin(container)
    let slot = Slot()
    items.append((name, slot))
    return slot
  }

  func write(to out: inout ByteBuffer) {
    switch content {
    case .scalar(let text): out.append(string: text)
    case .string(let text): out.appendJSONString(text)
    case .array, .object:
      let isObject = content == .object
      out.append(isObject ? "{" : "[")
      for (place, item) in items.enumerated() {
        if place > 0 { out.append(UInt8(ascii: ",")) }
        if isObject {
          out.appendJSONString(item.name)
          out.append(UInt8(ascii: ":"))
        }
        item.slot.write(to: &out)
      }
      out.append(isObject ? "}" : "]")
    }
  }
}

private struct TreeEncoder: Encoder, SingleValueEncodingContainer, UnkeyedEncodingContainer {
  let slot: Slot
  let codingPath: [any CodingKey]
  /// Whether each value is an item of an array.
  var isList = false
  var count: Int { slot.count }
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  init(slot: Slot, codingPath: [any CodingKey]) { (self.slot, self.codingPath) = (slot, codingPath) }

  func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
    slot.begin(.object)
    return KeyedEncodingContainer(Keyed<Key>(slot: slot, codingPath: codingPath))
  }

  func unkeyedContainer() -> any UnkeyedEncodingContainer {
    slot.begin(.array)
    var list = self
    list.isList = true
    return list
  }

  func singleValueContainer() -> any SingleValueEncodingContainer { self }
  private func next() -> Slot { isList ? slot.add(to: .array) : slot }
  mutating func encodeNil() { next().content = .scalar("null") }
  mutating func encode(_ value: Bool) { next().content = .scalar(value ? "true" : "false") }
  mutating func encode(_ value: String) { next().content = .string(value) }
  mutating func encode(_ value: Double) throws { next().content = try Self.number(value, codingPath) }
  mutating func encode(_ value: Float) throws { next().content = try Self.number(value, codingPath) }

  // Integers of all types.
  mutating func encode<T: FixedWidthInteger & Encodable>(_ value: T) { next().content = .scalar("\(value)") }

  mutating func encode<T: Encodable>(_ value: T) throws {
    try value.encode(to: TreeEncoder(slot: next(), codingPath: codingPath))
  }

  mutating func nestedContainer<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
    TreeEncoder(slot: next(), codingPath: codingPath).container(keyedBy: type)
  }

  mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
    TreeEncoder(slot: next(), codingPath: codingPath).unkeyedContainer()
  }

  mutating func superEncoder() -> any Encoder { TreeEncoder(slot: next(), codingPath: codingPath) }

  static func number<T: BinaryFloatingPoint & LosslessStringConvertible & Encodable>(
    _ value: T, _ path: [any CodingKey]
  ) throws -> Slot.Content {
    guard value.isFinite else {
      throw EncodingError.invalidValue(value, .init(codingPath: path, debugDescription: "JSON has no number \(value)"))
    }
    return .scalar("\(value)")
  }

  private struct Keyed<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let slot: Slot
    let codingPath: [any CodingKey]

    private func encoder(_ key: any CodingKey) -> TreeEncoder {
      TreeEncoder(slot: slot.add(key.stringValue, to: .object), codingPath: codingPath + [key])
    }

    func encodeNil(forKey key: Key) {
      var encoder = encoder(key)
      encoder.encodeNil()
    }

    func encode<T: Encodable>(_ value: T, forKey key: Key) throws {
      var encoder = encoder(key)
      // Scalars have specific encodings, which a generic call would not select.
      switch value {
      case let value as String: encoder.encode(value)
      case let value as Bool: encoder.encode(value)
      case let value as Int: encoder.encode(value)
      default: try encoder.encode(value)
      }
    }

    func nestedContainer<Nested: CodingKey>(
      keyedBy type: Nested.Type, forKey key: Key
    ) -> KeyedEncodingContainer<Nested> { encoder(key).container(keyedBy: type) }

    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer { encoder(key).unkeyedContainer() }
    func superEncoder() -> any Encoder { TreeEncoder(slot: slot.add("super", to: .object), codingPath: codingPath) }
    func superEncoder(forKey key: Key) -> any Encoder { encoder(key) }
  }
}

enum JSONViewDecoder {
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
