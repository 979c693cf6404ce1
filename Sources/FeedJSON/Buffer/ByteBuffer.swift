import Glibc

/// A growing buffer of bytes in one block of raw memory, in which messages are written.
///
/// Appending is amortized O(bytes), because the block at least doubles when it grows. The process aborts if no memory is
/// left, as with the collections of the standard library. Callers check limits before they append.
///
///     var out = ByteBuffer()
///     out.append("{\"count\":")
///     out.append(integer: 3)
///     out.append(UInt8(ascii: "}"))
///
/// Invariant: `count` is at most `capacity`; there is a block if and only if `capacity` is above 0.
@frozen public struct ByteBuffer: ~Copyable {
  @usableFromInline var block: UnsafeMutablePointer<UInt8>
  @usableFromInline var used: Int
  @usableFromInline var room: Int

  /// Creates an empty buffer with room for `capacity` bytes. Without room it takes no memory.
  @inlinable public init(capacity: Int = 0) {
    (block, used, room) = (Self.noBlock, 0, 0)
    if capacity > 0 { grow(capacity) }
  }

  @inlinable deinit { if room > 0 { free(block) } }

  /// The address of a buffer without room. It is never accessed.
  @usableFromInline static var noBlock: UnsafeMutablePointer<UInt8> {
    @inlinable get { UnsafeMutablePointer(bitPattern: MemoryLayout<Int>.alignment).unsafelyUnwrapped }
  }

  private static let smallest = 32

  /// The first byte. It moves when the buffer grows.
  @inlinable public var pointer: UnsafeMutablePointer<UInt8> { block }
  /// The number of bytes that fit without growing.
  @inlinable public var capacity: Int { room }
  /// The number of bytes written.
  @inlinable public var count: Int { used }

  @inlinable public var isEmpty: Bool { used == 0 }
  /// The bytes written. Valid until the next mutation.
  @inlinable public var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: block, count: used) }

  /// Makes room for `more` bytes. Amortized O(1).
  @inlinable public mutating func reserve(_ more: Int) {
    assert(more >= 0)
    if room &- used < more { grow(more) }
  }

  @usableFromInline mutating func grow(_ more: Int) {
    let wanted = max(used + more, room &* 2, Self.smallest)
    block = Self.allocate(room > 0 ? block : nil, wanted)
    room = wanted
  }

  private static func allocate(_ old: UnsafeMutablePointer<UInt8>?, _ room: Int) -> UnsafeMutablePointer<UInt8> {
    guard let block = realloc(old, room) else { abort() }
    return block.assumingMemoryBound(to: UInt8.self)
  }

  /// Removes all bytes, and frees the memory unless `keepingCapacity`.
  public mutating func removeAll(keepingCapacity: Bool) {
    used = 0
    guard !keepingCapacity, room > Self.smallest else { return }
    block = Self.allocate(block, Self.smallest)
    room = Self.smallest
  }

  /// Replaces the memory by a block of `capacity` bytes, the first `count` of which were written.
  /// - Parameter block: allocated by `malloc` or `realloc`. From now on the buffer is its owner.
  public mutating func replace(by block: UnsafeMutableRawPointer, count: Int, capacity: Int) {
    assert(count >= 0 && count <= capacity && capacity > 0)
    if room > 0 { free(self.block) }
    (self.block, used, room) = (block.assumingMemoryBound(to: UInt8.self), count, capacity)
  }

  /// Keeps the first `count` bytes. A count past the end has no effect.
  @inlinable public mutating func truncate(to count: Int) { if count >= 0 && count < used { used = count } }

  /// Adds `more` bytes that the caller has written at `pointer + count`.
  /// - Precondition: the room was made by `reserve`.
  @inlinable public mutating func didWrite(_ more: Int) {
    assert(more >= 0 && more <= room - used)
    used &+= more
  }
}

// The buffer is the only owner of its block, so it can move between threads.
extension ByteBuffer: @unchecked Sendable {}

extension ByteBuffer {
  /// Appends one byte.
  @inlinable @inline(__always) public mutating func append(_ byte: UInt8) {
    reserve(1)
    block[used] = byte
    used &+= 1
  }

  /// Appends a literal.
  ///
  /// Always inlined, so that the copy of a literal of known length is a few stores.
  @inlinable @inline(__always) public mutating func append(_ text: StaticString) {
    let length = text.utf8CodeUnitCount
    reserve(length)
    memcpy(block + used, text.utf8Start, length)
    used &+= length
  }

  /// Appends bytes.
  /// - Precondition: they are not in the block of this buffer, which can move.
  @inlinable public mutating func append(_ bytes: UnsafeRawBufferPointer) {
    guard let source = bytes.baseAddress else { return }
    assert(source < UnsafeRawPointer(block) || source >= UnsafeRawPointer(block + room), "the bytes are in this buffer")
    reserve(bytes.count)
    memcpy(block + used, source, bytes.count)
    used &+= bytes.count
  }

  /// Appends the UTF-8 of a string, without quotes or escapes.
  @inlinable public mutating func append(string: String) {
    var string = string
    string.withUTF8 { append(UnsafeRawBufferPointer($0)) }
  }

  /// Appends four bytes, most significant first.
  @inlinable public mutating func appendUInt32BigEndian(_ value: UInt32) {
    reserve(4)
    UnsafeMutableRawPointer(block + used).storeBytes(of: value.bigEndian, as: UInt32.self)
    used &+= 4
  }

  /// Replaces the four bytes at `offset`. An offset past the end has no effect.
  @inlinable public mutating func overwriteUInt32BigEndian(at offset: Int, _ value: UInt32) {
    guard offset >= 0, offset <= used &- 4 else { return }
    UnsafeMutableRawPointer(block + offset).storeBytes(of: value.bigEndian, as: UInt32.self)
  }
}

extension ByteBuffer {
  /// Appends the decimal digits of an integer, after a minus sign if it is negative.
  public mutating func append(integer value: Int) {
    if value < 0 { append(UInt8(ascii: "-")) }
    append(integer: UInt64(value.magnitude))
  }

  /// Appends the decimal digits of an integer.
  @inlinable public mutating func append(integer value: UInt32) { append(integer: UInt64(value)) }

  /// Appends the decimal digits of an integer.
  @inlinable @inline(__always) public mutating func append(integer value: UInt64) {
    if value < 10 { return append(UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: value)) }
    append(digits: value)
  }

  /// Appends the digits of a number of several.
  @usableFromInline mutating func append(digits value: UInt64) {
    if value < 10_000 { return append(upToFourDigits: UInt32(truncatingIfNeeded: value)) }
    let length = Self.digitCount(value)
    reserve(length)
    var place = block + (used &+ length)
    var rest = value
    // Two digits a step halve the number of divisions, each of which depends on the one before.
    while rest >= 10 {
      let (quotient, pair) = rest.quotientAndRemainder(dividingBy: 100)
      place -= 2
      let digits = Self.pairs.utf8Start + Int(truncatingIfNeeded: pair &* 2)
      place[0] = digits[0]
      place[1] = digits[1]
      rest = quotient
    }
    if place > block + used { block[used] = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: rest) }
    used &+= length
  }

  @inline(__always)
  private mutating func append(upToFourDigits value: UInt32) {
    let (high, low) = (value / 100, value % 100)
    let digits = UnsafeRawPointer(Self.pairs.utf8Start)
    let word =
      UInt32(digits.loadUnaligned(fromByteOffset: Int(high &* 2), as: UInt16.self).littleEndian)
      | UInt32(digits.loadUnaligned(fromByteOffset: Int(low &* 2), as: UInt16.self).littleEndian) &<< 16
    let zeros = value >= 1000 ? 0 : value >= 100 ? 1 : value >= 10 ? 2 : 3
    reserve(4)
    UnsafeMutableRawPointer(block + used).storeBytes(
      of: (word &>> UInt32(truncatingIfNeeded: zeros &* 8)).littleEndian, as: UInt32.self)
    used &+= 4 &- zeros
  }

  /// The two digits of each number from 0 to 99.
  static let pairs: StaticString = """
    00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445464748495051525354555657\
    585960616263646566676869707172737475767778798081828384858687888990919293949596979899
    """

  private static func digitCount(_ value: UInt64) -> Int {
    var (count, rest) = (1, value)
    while rest >= 10_000 {
      count &+= 4
      rest /= 10_000
    }
    return count &+ (rest >= 1000 ? 3 : rest >= 100 ? 2 : rest >= 10 ? 1 : 0)
  }
}

extension ByteBuffer {
  /// Appends a JSON string with only the escapes that RFC 8259 requires.
  public mutating func appendJSONString(_ string: String) {
    // Without a copy, whose reference would be counted.
    let isDone: Void? = string.utf8.withContiguousStorageIfAvailable {
      appendJSONString(utf8: UnsafeRawBufferPointer($0))
    }
    if isDone != nil { return }
    var string = string
    string.withUTF8 { appendJSONString(utf8: UnsafeRawBufferPointer($0)) }
  }

  /// Appends a literal and a JSON string, such as a member of an object.
  ///
  ///     out.append(",\"feed\":", quoted: name)
  @inlinable @inline(__always) public mutating func append(_ text: StaticString, quoted string: String) {
    append(text)
    appendJSONString(string)
  }

  /// Appends a literal and the decimal digits of an integer, such as a member of an object.
  @inlinable @inline(__always) public mutating func append(_ text: StaticString, integer value: some FixedWidthInteger)
  {
    append(text)
    if value < 0 { append(integer: Int(value)) } else { append(integer: UInt64(value)) }
  }

  /// Returns the text that `write` appends to an empty buffer.
  @inlinable public static func text(_ write: (inout ByteBuffer) -> Void) -> String {
    var buffer = ByteBuffer()
    write(&buffer)
    return String(decoding: buffer.bytes, as: UTF8.self)
  }

  /// Appends the elements of an array of JSON strings, without the brackets.
  public mutating func appendJSONStrings(_ strings: [String]) {
    for (place, string) in strings.enumerated() {
      if place > 0 { append(UInt8(ascii: ",")) }
      appendJSONString(string)
    }
  }

  /// Appends UTF-8 as a JSON string with only the escapes that RFC 8259 requires.
  ///
  /// A surrogate in three bytes, as from `JSONView.withDecodedUTF8`, is escaped. Any other invalid byte becomes U+FFFD, so
  /// that the result is always valid.
  public mutating func appendJSONString(utf8: UnsafeRawBufferPointer) {
    reserve(utf8.count &+ 2)
    append(UInt8(ascii: "\""))
    utf8.withMemoryRebound(to: UInt8.self) { appendEscaped($0) }
    append(UInt8(ascii: "\""))
  }

  private mutating func appendEscaped(_ utf8: UnsafeBufferPointer<UInt8>) {
    guard var p = utf8.baseAddress else { return }
    let end = p + utf8.count
    var copied = p
    while p < end {
      if end - p >= 8 {
        let stops = Words.stringStops(Words.load(p))
        guard stops != 0 else {
          p = Words.skipPlain(p + 8, end)
          continue
        }
        p += Words.firstIndex(stops)
      } else if utf8.count >= 8, Words.stringStops(Words.load(end - 8)) == 0 {
        break
      }
      let length = p.pointee < 0x80 ? (Self.isPlain(p.pointee) ? 1 : 0) : UTF8Check.sequenceLength(p, end)
      if length > 0 {
        p += length
        continue
      }
      append(UnsafeRawBufferPointer(start: copied, count: p - copied))
      p += appendEscape(p, end)
      copied = p
    }
    append(UnsafeRawBufferPointer(start: copied, count: end - copied))
  }

  private static func isPlain(_ byte: UInt8) -> Bool {
    byte >= 0x20 && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
  }

  /// Appends an escape for the bytes at `p`. Returns their number.
  private mutating func appendEscape(_ p: UnsafePointer<UInt8>, _ end: UnsafePointer<UInt8>) -> Int {
    let byte = p.pointee
    switch byte {
    case UInt8(ascii: "\""): append("\\\"")
    case UInt8(ascii: "\\"): append("\\\\")
    case 0x08: append("\\b")
    case 0x09: append("\\t")
    case 0x0A: append("\\n")
    case 0x0C: append("\\f")
    case 0x0D: append("\\r")
    case 0xED where end - p >= 3 && p[1] >= 0xA0 && p[1] <= 0xBF && UTF8Check.isContinuation(p[2]):
      appendUnicodeEscape(0xD000 | UInt16(p[1] & 0x3F) &<< 6 | UInt16(p[2] & 0x3F))
      return 3
    case 0x80...: append("\u{FFFD}")
    default: appendUnicodeEscape(UInt16(byte))
    }
    return 1
  }

  private mutating func appendUnicodeEscape(_ unit: UInt16) {
    append("\\u")
    for shift: UInt16 in [12, 8, 4, 0] { append(Hex.digit(UInt8(truncatingIfNeeded: unit &>> shift) & 0xF)) }
  }
}
