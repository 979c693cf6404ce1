extension JSONNumber {
  /// Appends a sort key for a number of RFC 8259: `memcmp` orders keys as the values are ordered.
  ///
  /// Equal values have equal keys, however they are written. No key is a prefix of another, so keys can be concatenated. A
  /// number of d significant digits has a key of 2 + ⌈d/2⌉ bytes, with the first 14 digits in the first 8 bytes.
  public static func appendOrderedKey(of text: UnsafeRawBufferPointer, to buffer: inout ByteBuffer) {
    if appendIntegerKey(of: text, to: &buffer) { return }
    JSONNumber(text).appendOrderedKey(to: &buffer)
  }

  /// Appends the same key as `appendOrderedKey(to:)` for a text of an optional minus sign and digits, as most sort keys are.
  /// Returns false and appends nothing for any other text.
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

  /// Appends the key of the number: a byte for sign and exponent, eight more bytes for an exponent that does not fit in it,
  /// a byte of 1–100 for each two digits, and a 0. The key of zero is 0x80 alone. A negative number has all bytes inverted.
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
    while let tens = rest.next() { buffer.append((tens &* 10 &+ (rest.next() ?? 0) &+ 1) ^ flip) }
    buffer.append(flip)
  }

  /// Appends the ``canonicalText`` of the number with a key.
  /// - Parameters:
  ///   - key: the bytes that `appendOrderedKey(of:to:)` appended.
  ///   - isInverted: whether all bytes of the key are inverted.
  public static func appendCanonicalText(
    ofKey key: UnsafeRawBufferPointer, isInverted: Bool, to buffer: inout ByteBuffer
  ) {
    guard key.count > 1 else { return buffer.append(UInt8(ascii: "0")) }
    var flip: UInt8 = isInverted ? 0xFF : 0
    let isNegative = key[0] ^ flip < 0x80
    if isNegative { flip = ~flip }
    let first = key[0] ^ flip
    var start = 1
    var exponent = Int(first) &- 0x82 &+ shortExponents.lowerBound
    if first == 0x81 || first == 0xFF {
      start = 9
      var biased: UInt64 = 0
      for byte in key[1..<9] { biased = biased &<< 8 | UInt64(byte ^ flip) }
      exponent = Int(Int64(bitPattern: biased ^ (1 << 63)))
    }
    let pairs = UnsafeRawBufferPointer(rebasing: key[start..<(key.count &- 1)])
    if exponent <= 21 && exponent >= 2 &* pairs.count {
      return appendInteger(pairs, flip: flip, length: exponent, isNegative: isNegative, to: &buffer)
    }
    let digits = KeyDigits(pairs: pairs, flip: flip)
    if exponent <= 21 && exponent >= digits.count {
      return appendInteger(pairs, flip: flip, length: exponent, isNegative: isNegative, to: &buffer)
    }
    appendCanonicalText(digits, count: digits.count, exponent: exponent, isNegative: isNegative, to: &buffer)
  }

  /// Appends an integer of `length` digits, of which a key has the first ones.
  private static func appendInteger(
    _ pairs: UnsafeRawBufferPointer, flip: UInt8, length: Int, isNegative: Bool, to buffer: inout ByteBuffer
  ) {
    if isNegative { buffer.append(UInt8(ascii: "-")) }
    // The last pair may have a zero beyond the digits.
    buffer.reserve(length &+ 1)
    var place = buffer.pointer + buffer.count
    let end = place + length
    let table = UnsafeRawPointer(ByteBuffer.pairs.utf8Start)
    if var pair = pairs.baseAddress {
      let last = pair + pairs.count
      while pair < last {
        let value = (pair.load(as: UInt8.self) ^ flip) &- 1
        let digits = table.loadUnaligned(fromByteOffset: 2 &* Int(value), as: UInt16.self)
        UnsafeMutableRawPointer(place).storeBytes(of: digits, as: UInt16.self)
        pair += 1
        place += 2
      }
    }
    while place < end {
      place.pointee = UInt8(ascii: "0")
      place += 1
    }
    buffer.didWrite(length)
  }

  /// The values of the digits in a key, 0–9.
  private struct KeyDigits: Sequence, IteratorProtocol {
    /// The bytes of 1–100, each for two digits.
    let pairs: UnsafeRawBufferPointer
    let flip: UInt8
    let count: Int
    private var place = 0

    init(pairs: UnsafeRawBufferPointer, flip: UInt8) {
      (self.pairs, self.flip) = (pairs, flip)
      // The last digit is not zero, so a pair that ends with zero has only one digit.
      let last = pairs.last.map { ($0 ^ flip) &- 1 } ?? 0
      count = 2 &* pairs.count &- (last % 10 == 0 ? 1 : 0)
    }

    mutating func next() -> UInt8? {
      if place >= count { return nil }
      let pair = (pairs[place / 2] ^ flip) &- 1
      defer { place &+= 1 }
      return place & 1 == 0 ? pair / 10 : pair % 10
    }
  }

  /// The exponents that fit in the first byte, as 0x82–0xFE.
  private static let shortExponents = -44...80
}
