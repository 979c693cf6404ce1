extension JSONNumber {
  /// Appends a key for a number of RFC 8259 that `memcmp` orders as the values are ordered.
  ///
  /// Equal values have the same key however they are written, and no key is the beginning of another, so keys can be
  /// concatenated. A number of d significant digits takes 2 + ⌈d/2⌉ bytes, its first 14 digits within the first 8.
  public static func appendOrderedKey(of text: UnsafeRawBufferPointer, to buffer: inout ByteBuffer) {
    JSONNumber(text).appendOrderedKey(to: &buffer)
  }

  /// The layout: a byte for sign and exponent (0x80 is zero and stands alone), eight more for an exponent that does not
  /// fit, then two digits a byte as 1–100, then 0. Below zero every byte is complemented.
  public func appendOrderedKey(to buffer: inout ByteBuffer) {
    guard digitCount > 0 else { return buffer.append(0x80) }
    let flip: UInt8 = isNegative ? 0xFF : 0
    if exponent >= Self.shortExponents.lowerBound && exponent <= Self.shortExponents.upperBound {
      buffer.append(UInt8(truncatingIfNeeded: exponent &- Self.shortExponents.lowerBound &+ 0x82) ^ flip)
    } else {
      buffer.append((exponent < 0 ? 0x81 : 0xFF) ^ flip)
      var shift = 56
      let biased = UInt64(bitPattern: Int64(exponent)) ^ (1 << 63)
      while shift >= 0 {
        buffer.append(UInt8(truncatingIfNeeded: biased &>> UInt64(shift)) ^ flip)
        shift &-= 8
      }
    }
    var rest = digits
    while let tens = rest.next() {
      buffer.append((tens &* 10 &+ (rest.next() ?? 0) &+ 1) ^ flip)
    }
    buffer.append(flip)
  }

  /// Exponents that are part of the first byte, 0x82–0xFE.
  private static let shortExponents = -44...80
}
