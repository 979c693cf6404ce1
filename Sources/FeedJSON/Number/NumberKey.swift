extension JSONNumber {
  /// Appends a key for a number of RFC 8259 that `memcmp` orders as the values are ordered.
  ///
  /// Equal values have the same key however they are written, and no key is the beginning of another, so keys can be
  /// concatenated. A number of d significant digits takes 2 + ⌈d/2⌉ bytes, its first 14 digits within the first 8.
  public static func appendOrderedKey(of text: UnsafeRawBufferPointer, to buffer: inout ByteBuffer) {
    if appendIntegerKey(of: text, to: &buffer) { return }
    JSONNumber(text).appendOrderedKey(to: &buffer)
  }

  /// The key of a text that is digits with or without a minus sign before them, as those of most sort keys are; false, and
  /// nothing is appended, for any other. It is the key that the number taken apart has.
  private static func appendIntegerKey(of text: UnsafeRawBufferPointer, to buffer: inout ByteBuffer) -> Bool {
    guard let base = text.baseAddress, text.count <= 20 else { return false }
    let start = base.assumingMemoryBound(to: UInt8.self)
    var end = start + text.count
    let negative = start.pointee == UInt8(ascii: "-")
    let first = negative ? start + 1 : start
    guard first < end, first.pointee != UInt8(ascii: "0") else { return false }
    var p = first
    while p < end {
      if !NumberTail.isDigit(p.pointee) { return false }
      p += 1
    }
    let exponent = end - first
    while end[-1] == UInt8(ascii: "0") { end -= 1 }
    let flip: UInt8 = negative ? 0xFF : 0
    buffer.append(UInt8(truncatingIfNeeded: exponent &- Self.shortExponents.lowerBound &+ 0x82) ^ flip)
    p = first
    while p < end {
      let ones = p + 1 < end ? p[1] &- UInt8(ascii: "0") : 0
      buffer.append(((p[0] &- UInt8(ascii: "0")) &* 10 &+ ones &+ 1) ^ flip)
      p += 2
    }
    buffer.append(flip)
    return true
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
