import FeedJSON
import FeedQuery
import Glibc

/// The order of a sorted bin: singular paths, each ascending or descending.
///
/// The key of an element is a byte string. Comparing keys with `memcmp` gives the order of Protocol/README.md, "Collections":
/// null, false, true, numbers by exact value, strings by code point, arrays and objects, which are equal to each other. An
/// absent value is last in either direction. Invariant: no key is a prefix of another.
struct SortOrder: Sendable {
  struct Term: Sendable {
    let path: SingularPath
    let descending: Bool
    /// Whether the term determines the section of an element. Values that name no section then count as absent.
    var isSection = false

    /// The value that counts of what the path finds; nil for none.
    @inline(__always)
    func value(in found: JSONView?) -> JSONView? {
      if isSection, let found, !SectionName.isNamed(by: found) { return nil }
      return found
    }
  }

  let terms: [Term]

  private enum Rank {
    static let null: UInt8 = 1
    static let `false`: UInt8 = 2
    static let `true`: UInt8 = 3
    static let number: UInt8 = 4
    static let string: UInt8 = 5
    static let structure: UInt8 = 6
    static let absent: UInt8 = 0xFF
  }

  /// What keys may take: each term looks at the members of the element, and repeats the value that it finds, which may be long.
  struct Room {
    /// The bytes that the buffer of the keys may have.
    let bytes: Int
    /// The steps that are left for finding values; see `SingularPath.resolve(_:steps:)`.
    var steps: Int
  }

  /// Appends the length of the key of `element` in 4 bytes, then the key.
  func appendKey(of element: JSONView, to buffer: inout ByteBuffer) {
    let start = buffer.count
    buffer.appendUInt32BigEndian(0)
    for term in terms {
      Self.append(term.value(in: term.path.resolve(element)), descending: term.descending, to: &buffer)
    }
    buffer.overwriteUInt32BigEndian(at: start, UInt32(buffer.count &- start &- 4))
  }

  /// Like `appendKey(of:to:)`, within some room.
  /// - Returns: false if there is too little room; the key then ends there.
  @discardableResult
  func appendKey(of element: JSONView, to buffer: inout ByteBuffer, within room: inout Room) -> Bool {
    let start = buffer.count
    buffer.appendUInt32BigEndian(0)
    for term in terms {
      let value = term.value(in: term.path.resolve(element, steps: &room.steps))
      Self.append(value, descending: term.descending, to: &buffer)
      if buffer.count > room.bytes || room.steps < 0 { break }
    }
    let isWhole = buffer.count <= room.bytes && room.steps >= 0
    if !isWhole { buffer.truncate(to: max(room.bytes, start &+ 4)) }
    buffer.overwriteUInt32BigEndian(at: start, UInt32(buffer.count &- start &- 4))
    return isWhole
  }

  private static func append(_ value: JSONView?, descending: Bool, to buffer: inout ByteBuffer) {
    guard let value else { return buffer.append(Rank.absent) }
    let start = buffer.count
    switch value.kind {
    case .null: buffer.append(Rank.null)
    case .false: buffer.append(Rank.false)
    case .true: buffer.append(Rank.true)
    case .number:
      buffer.append(Rank.number)
      JSONNumber.appendOrderedKey(of: value.text, to: &buffer)
    case .string:
      buffer.append(Rank.string)
      value.withDecodedUTF8 { appendDelimited($0, to: &buffer) }
    case .array, .object: buffer.append(Rank.structure)
    }
    if descending {
      for place in start..<buffer.count { buffer.pointer[place] = ~buffer.pointer[place] }
    }
  }

  /// Appends bytes with 0xFF after each zero, and two zeros at the end: in the same order, none a prefix of another.
  private static func appendDelimited(_ bytes: UnsafeRawBufferPointer, to buffer: inout ByteBuffer) {
    var rest = bytes
    while let start = rest.baseAddress, let zero = memchr(start, 0, rest.count) {
      let end = UnsafeRawPointer(zero) - start + 1
      buffer.append(UnsafeRawBufferPointer(rebasing: rest[..<end]))
      buffer.append(0xFF)
      rest = UnsafeRawBufferPointer(rebasing: rest[end...])
    }
    buffer.append(rest)
    buffer.append(0)
    buffer.append(0)
  }

  /// The value of the key of a single term.
  enum KeyedValue {
    case `false`, `true`
    /// The key of a number, see `JSONNumber.appendOrderedKey(of:to:)`, inverted if the term is descending.
    case number(UnsafeRawBufferPointer)
    /// The bytes of a string, inverted if the term is descending, and with a byte after each zero.
    case string(UnsafeRawBufferPointer)
    case other
  }

  @inline(__always)
  static func value(of key: UnsafeRawBufferPointer, descending: Bool) -> KeyedValue {
    let mask: UInt8 = descending ? 0xFF : 0
    return switch key.first.map({ $0 ^ mask }) {
    case Rank.false: .false
    case Rank.true: .true
    case Rank.number: .number(UnsafeRawBufferPointer(rebasing: key[1...]))
    case Rank.string: .string(UnsafeRawBufferPointer(rebasing: key[1..<(key.count - 2)]))
    default: .other
    }
  }

  /// The key with this index in the `keys` of an element. O(index).
  static func key(_ index: Int, in keys: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    var offset = 0
    for _ in 0..<index { offset &+= 4 &+ length(at: offset, in: keys) }
    let length = length(at: offset, in: keys)
    return UnsafeRawBufferPointer(rebasing: keys[(offset &+ 4)..<(offset &+ 4 &+ length)])
  }

  private static func length(at offset: Int, in keys: UnsafeRawBufferPointer) -> Int {
    Int(UInt32(bigEndian: keys.loadUnaligned(fromByteOffset: offset, as: UInt32.self)))
  }

  /// The first eight bytes of a key as a number, padded with zeros. Unequal prefixes have the order of their keys.
  static func prefix(of key: UnsafeRawBufferPointer) -> UInt64 {
    if key.count >= 8 { return UInt64(bigEndian: key.loadUnaligned(as: UInt64.self)) }
    var prefix: UInt64 = 0
    for byte in key { prefix = prefix << 8 | UInt64(byte) }
    return prefix << UInt64(8 &* (8 &- key.count))
  }

  static func isAfter(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Bool { compare(a, b) > 0 }

  /// Compares two keys as `memcmp` does; a proper prefix sorts first.
  static func compare(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Int32 {
    guard let x = a.baseAddress, let y = b.baseAddress else {
      return a.count == b.count ? 0 : (a.count < b.count ? -1 : 1)
    }
    let order = memcmp(x, y, min(a.count, b.count))
    return order != 0 ? order : (a.count == b.count ? 0 : (a.count < b.count ? -1 : 1))
  }
}
