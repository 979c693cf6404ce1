import FeedJSON
import FeedQuery
import Glibc

/// The order of a sorted bin: one or more singular queries, each ascending or descending.
///
/// An element's key is a byte string such that comparing keys with `memcmp` compares elements as PROTOCOL section 6
/// says: null < false < true < numbers by exact value < strings by code point < arrays and objects, equal among
/// themselves; absent last in either direction. Keys delimit themselves: none is a prefix of another.
struct SortOrder: Sendable {
  struct Term: Sendable {
    let path: SingularPath
    let descending: Bool
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

  /// Appends the key of `element` behind its 4-byte length.
  func appendKey(of element: JSONView, to buffer: inout ByteBuffer) {
    let start = buffer.count
    buffer.appendUInt32BigEndian(0)
    for term in terms { Self.append(term.path.resolve(element), descending: term.descending, to: &buffer) }
    buffer.overwriteUInt32BigEndian(at: start, UInt32(buffer.count &- start &- 4))
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

  /// Bytes with every zero followed by 0xFF and two zeros at the end: order is kept and no key is a prefix of another.
  private static func appendDelimited(_ bytes: UnsafeRawBufferPointer, to buffer: inout ByteBuffer) {
    for byte in bytes {
      buffer.append(byte)
      if byte == 0 { buffer.append(0xFF) }
    }
    buffer.append(0)
    buffer.append(0)
  }

  /// The key number `index` among the `keys` of an element's version.
  static func key(_ index: Int, in keys: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    var offset = 0
    for _ in 0..<index { offset &+= 4 &+ length(at: offset, in: keys) }
    let length = length(at: offset, in: keys)
    return UnsafeRawBufferPointer(rebasing: keys[(offset &+ 4)..<(offset &+ 4 &+ length)])
  }

  private static func length(at offset: Int, in keys: UnsafeRawBufferPointer) -> Int {
    Int(UInt32(bigEndian: keys.loadUnaligned(fromByteOffset: offset, as: UInt32.self)))
  }

  /// The first eight bytes of a key as a number, zeros where it is shorter: it orders as the key does, ties aside.
  static func prefix(of key: UnsafeRawBufferPointer) -> UInt64 {
    if key.count >= 8 { return UInt64(bigEndian: key.loadUnaligned(as: UInt64.self)) }
    var prefix: UInt64 = 0
    for byte in key { prefix = prefix << 8 | UInt64(byte) }
    return prefix << UInt64(8 &* (8 &- key.count))
  }

  /// Whether `a` orders after `b`.
  static func isAfter(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Bool {
    compare(a, b) > 0
  }

  static func compare(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Int32 {
    guard let x = a.baseAddress, let y = b.baseAddress else {
      return a.count == b.count ? 0 : (a.count < b.count ? -1 : 1)
    }
    let order = memcmp(x, y, min(a.count, b.count))
    return order != 0 ? order : (a.count == b.count ? 0 : (a.count < b.count ? -1 : 1))
  }
}
