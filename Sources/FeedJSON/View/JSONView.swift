/// One value of a scanned text: two pointers, not owned, cheap to copy.
///
/// Valid until the next scan by the scanner that made it, and only while the scanned bytes stay where they are.
@frozen public struct JSONView {
  /// The first byte of the scanned text.
  @usableFromInline let base: UnsafePointer<UInt8>
  /// This value on the tape.
  @usableFromInline let token: UnsafePointer<JSONToken>

  @inlinable init(base: UnsafePointer<UInt8>, token: UnsafePointer<JSONToken>) {
    self.base = base
    self.token = token
  }

  /// What the value is.
  @inlinable public var kind: JSONKind {
    // Every token is written by the scanner with one of the seven kinds.
    JSONKind(rawValue: UInt8(truncatingIfNeeded: token.pointee.info & JSONToken.kindMask)).unsafelyUnwrapped
  }

  /// Whether the value is of that kind.
  @inlinable func isKind(_ kind: JSONKind) -> Bool {
    token.pointee.info & JSONToken.kindMask == UInt32(kind.rawValue)
  }

  /// The source text of the value, white space inside included, with quotes or brackets.
  @inlinable public var text: UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: start, count: Int(token.pointee.length))
  }

  /// Offset in bytes of `text` in the scanned text.
  @inlinable public var byteOffset: Int { Int(token.pointee.offset) }

  @inlinable var start: UnsafePointer<UInt8> { base + Int(token.pointee.offset) }

  /// Behind the last token of this value.
  @inlinable var tokenEnd: UnsafePointer<JSONToken> { token + Int(token.pointee.span) }

  /// Whether there is no white space outside strings inside this value.
  @inlinable public var isCompact: Bool { token.pointee.info & JSONToken.hasSpaces == 0 }

  /// The value of `true` or `false`; nil for other kinds.
  @inlinable public var bool: Bool? {
    isKind(.true) ? true : isKind(.false) ? false : nil
  }

  /// Whether this is `null`.
  @inlinable public var isNull: Bool { isKind(.null) }

  /// Number of members (names that stand twice count twice) or elements; 0 for scalars. O(1) below 16 million, then
  /// O(count).
  @inlinable public var count: Int {
    let stored = token.pointee.info &>> JSONToken.countShift
    return stored < JSONToken.countLimit ? Int(stored) : walkedCount
  }

  @usableFromInline var walkedCount: Int {
    var count = 0
    for _ in elements { count &+= 1 }
    if count == 0 { for _ in members { count &+= 1 } }
    return count
  }
}

extension JSONView {
  /// The value of a number that is exactly an integer in the range of `Int`, however it is written (`1e2` and `1.0`
  /// are). Nil for all other numbers and kinds.
  public var int: Int? {
    guard isKind(.number) else { return nil }
    let bytes = UnsafeBufferPointer(start: start, count: Int(token.pointee.length))
    if token.pointee.info & JSONToken.isPlainInteger != 0, bytes.count <= 18 {
      return JSONNumber.shortInteger(bytes)
    }
    return JSONNumber(bytes).int
  }
}
