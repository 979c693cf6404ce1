import Glibc

extension JSONView {
  /// Whether this is a string with at least one escape.
  @inlinable public var hasEscapes: Bool { token.pointee.info & JSONToken.hasEscapes != 0 }

  /// Whether this is a string with an unpaired surrogate, which ``string`` replaces. O(length) for a string with escapes.
  public var hasLoneSurrogate: Bool {
    hasEscapes && withDecodedUTF8 { zip($0, $0.dropFirst()).contains { $0 == 0xED && $1 >= 0xA0 } } == true
  }

  /// The text between the quotes; nil for other kinds.
  @inlinable var quotedBytes: UnsafeBufferPointer<UInt8>? {
    guard isKind(.string) else { return nil }
    return UnsafeBufferPointer(start: start + 1, count: Int(token.pointee.length) &- 2)
  }

  /// The decoded string, with U+FFFD for unpaired surrogates; nil for other kinds.
  public var string: String? {
    guard let raw = quotedBytes else { return nil }
    guard hasEscapes else { return String(decoding: raw, as: UTF8.self) }
    return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: raw.count) { room in
      let count = DecodedBytes(raw, surrogates: .replace).write(to: room)
      return String(decoding: room[..<count], as: UTF8.self)
    }
  }

  /// The decoded string if it has at most `limit` bytes of UTF-8; nil for longer strings and for other kinds.
  ///
  /// A string that no escape can make short enough is refused without being decoded. O(min(length, 6 · limit)).
  public func string(atMost limit: Int) -> String? {
    // No escape has more than six bytes for each byte that it decodes to.
    guard let raw = quotedBytes, raw.count / (hasEscapes ? 6 : 1) <= limit else { return nil }
    guard let string, string.utf8.count <= limit else { return nil }
    return string
  }

  /// Calls `body` with the decoded bytes, which are not copied if there are no escapes. Returns nil for other kinds.
  ///
  /// The bytes are UTF-8, except that an unpaired surrogate is three bytes, as in WTF-8, so that comparing bytes compares
  /// code points. They are valid only in `body`.
  @inlinable public func withDecodedUTF8<R>(_ body: (UnsafeRawBufferPointer) -> R) -> R? {
    guard let raw = quotedBytes else { return nil }
    return hasEscapes ? withUnescaped(raw, body) : body(UnsafeRawBufferPointer(raw))
  }

  @usableFromInline
  func withUnescaped<R>(_ raw: UnsafeBufferPointer<UInt8>, _ body: (UnsafeRawBufferPointer) -> R) -> R {
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: raw.count) { room in
      let count = DecodedBytes(raw).write(to: room)
      return body(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(room)[..<count]))
    }
  }

  /// Whether this is a string whose decoded value is `other`.
  @inlinable @inline(__always) public func stringEquals(_ other: StaticString) -> Bool {
    // Most unequal strings differ in length. The length of a literal is known to the compiler, so that comparing the bytes
    // takes one or two instructions for a short name.
    if hasEscapes { return other.withUTF8Buffer { decodedEquals($0) } }
    return Int(token.pointee.length) == other.utf8CodeUnitCount &+ 2 && isKind(.string)
      && Words.equal(start + 1, other.utf8Start, other.utf8CodeUnitCount)
  }

  /// Whether this is a string whose decoded value is `other`.
  @inlinable public func stringEquals(utf8 other: UnsafeRawBufferPointer) -> Bool {
    other.withMemoryRebound(to: UInt8.self) { stringEquals(bytes: $0) }
  }

  @usableFromInline func stringEquals(bytes other: UnsafeBufferPointer<UInt8>) -> Bool {
    guard let raw = quotedBytes else { return false }
    if hasEscapes { return decodedEquals(other) }
    guard raw.count == other.count else { return false }
    guard let a = raw.baseAddress, let b = other.baseAddress else { return true }
    return Words.equal(a, b, raw.count)
  }

  @usableFromInline func decodedEquals(_ other: UnsafeBufferPointer<UInt8>) -> Bool {
    guard let raw = quotedBytes else { return false }
    var decoded = DecodedBytes(raw)
    for byte in other where decoded.next() != byte { return false }
    return decoded.next() == nil
  }

  /// Compares two strings by code points: -1, 0 or 1. A value of another kind is less than any string.
  public func compareString(_ other: JSONView) -> Int {
    let (a, b) = (quotedBytes, other.quotedBytes)
    guard let a, let b, let first = a.baseAddress, let second = b.baseAddress else {
      return (a == nil ? 0 : 1) &- (b == nil ? 0 : 1)
    }
    if !hasEscapes && !other.hasEscapes {
      let order = memcmp(first, second, min(a.count, b.count))
      return order != 0 ? Int(order.signum()) : (a.count &- b.count).signum()
    }
    var (left, right) = (DecodedBytes(a), DecodedBytes(b))
    while true {
      switch (left.next(), right.next()) {
      case (nil, nil): return 0
      case (nil, _): return -1
      case (_, nil): return 1
      case (let l?, let r?): if l != r { return l < r ? -1 : 1 }
      }
    }
  }
}

/// The decoded bytes of a valid string, one by one, without allocation.
struct DecodedBytes: IteratorProtocol {
  /// The decoding of an unpaired surrogate.
  enum Surrogates {
    /// Three bytes, as in WTF-8, which keep the order of code points.
    case keep
    /// U+FFFD.
    case replace
  }

  private var p: UnsafePointer<UInt8>
  private let end: UnsafePointer<UInt8>
  private let surrogates: Surrogates
  /// The remaining bytes of an escape, the next one lowest.
  private var pending: UInt32 = 0

  init(_ raw: UnsafeBufferPointer<UInt8>, surrogates: Surrogates = .keep) {
    let start = raw.baseAddress ?? UnsafePointer(Self.nothing.utf8Start)
    p = start
    end = start + raw.count
    self.surrogates = surrogates
  }

  private static let nothing: StaticString = ""

  mutating func next() -> UInt8? {
    if pending != 0 {
      let byte = UInt8(truncatingIfNeeded: pending)
      pending &>>= 8
      return byte
    }
    guard p < end else { return nil }
    guard p.pointee == UInt8(ascii: "\\") else {
      defer { p += 1 }
      return p.pointee
    }
    let bytes = unescape()
    pending = bytes &>> 8
    return UInt8(truncatingIfNeeded: bytes)
  }

  /// Writes the remaining bytes to `room`. Returns their number, which is at most that of the raw bytes.
  consuming func write(to room: UnsafeMutableBufferPointer<UInt8>) -> Int {
    var count = 0
    while count < room.count, let byte = next() {
      room[count] = byte
      count &+= 1
    }
    return count
  }

  /// The UTF-8 of the escape at `p`, the first byte lowest. Only U+0000 has a zero byte.
  private mutating func unescape() -> UInt32 {
    let letter = p[1]
    guard letter == UInt8(ascii: "u") else {
      p += 2
      switch letter {
      case UInt8(ascii: "b"): return 0x08
      case UInt8(ascii: "f"): return 0x0C
      case UInt8(ascii: "n"): return 0x0A
      case UInt8(ascii: "r"): return 0x0D
      case UInt8(ascii: "t"): return 0x09
      default: return UInt32(letter)
      }
    }
    let unit = Hex.unit(p + 2)
    p += 6
    guard unit & 0xF800 == 0xD800 else { return Self.encode(unit) }
    if unit < 0xDC00, end - p >= 6, p[0] == UInt8(ascii: "\\"), p[1] == UInt8(ascii: "u") {
      let low = Hex.unit(p + 2)
      if low & 0xFC00 == 0xDC00 {
        p += 6
        return Self.encode(0x10000 &+ (unit & 0x3FF) &<< 10 | (low & 0x3FF))
      }
    }
    return Self.encode(surrogates == .keep ? unit : 0xFFFD)
  }

  private static func encode(_ c: UInt32) -> UInt32 {
    if c < 0x80 { return c }
    let last = 0x80 | c & 0x3F
    if c < 0x800 { return last &<< 8 | 0xC0 | c &>> 6 }
    let third = 0x80 | (c &>> 6) & 0x3F
    if c < 0x10000 { return last &<< 16 | third &<< 8 | 0xE0 | c &>> 12 }
    return last &<< 24 | third &<< 16 | (0x80 | (c &>> 12) & 0x3F) &<< 8 | 0xF0 | c &>> 18
  }
}
