import Glibc

extension JSONView {
  /// Whether this is a string with at least one escape: its text is not its decoded value.
  @inlinable public var hasEscapes: Bool { token.pointee.info & JSONToken.hasEscapes != 0 }

  /// What stands between the quotes; nil for other kinds.
  @inlinable var quotedBytes: UnsafeBufferPointer<UInt8>? {
    guard isKind(.string) else { return nil }
    return UnsafeBufferPointer(start: start + 1, count: Int(token.pointee.length) &- 2)
  }

  /// The decoded string; surrogates that stand alone become U+FFFD. Nil for other kinds.
  public var string: String? {
    guard let raw = quotedBytes else { return nil }
    guard hasEscapes else { return String(decoding: raw, as: UTF8.self) }
    return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: raw.count) { room in
      let count = DecodedBytes(raw, surrogates: .replace).write(to: room)
      return String(decoding: room[..<count], as: UTF8.self)
    }
  }

  /// Gives the decoded bytes, without a copy when there are no escapes. Nil for other kinds.
  ///
  /// UTF-8, save that an escaped surrogate that stands alone is three bytes as in WTF-8, so that comparing bytes is
  /// comparing code points. The bytes are valid only inside `body`.
  public func withDecodedUTF8<R>(_ body: (UnsafeRawBufferPointer) -> R) -> R? {
    guard let raw = quotedBytes else { return nil }
    guard hasEscapes else { return body(UnsafeRawBufferPointer(raw)) }
    return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: raw.count) { room in
      let count = DecodedBytes(raw).write(to: room)
      return body(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(room)[..<count]))
    }
  }

  /// Whether this is a string with that decoded value.
  @inlinable @inline(__always) public func stringEquals(_ other: StaticString) -> Bool {
    // Most that are not equal differ in length; escapes only make a string longer than what it spells.
    if Int(token.pointee.length) < other.utf8CodeUnitCount &+ 2 { return false }
    if Int(token.pointee.length) != other.utf8CodeUnitCount &+ 2 && !hasEscapes { return false }
    return other.withUTF8Buffer { stringEquals(bytes: $0) }
  }

  /// Whether this is a string whose decoded value is these bytes.
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

  func decodedEquals(_ other: UnsafeBufferPointer<UInt8>) -> Bool {
    guard let raw = quotedBytes else { return false }
    var decoded = DecodedBytes(raw)
    for byte in other where decoded.next() != byte { return false }
    return decoded.next() == nil
  }

  /// Orders two strings by code points: -1, 0 or 1. Values that are no strings count as empty strings.
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
