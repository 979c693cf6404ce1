/// Tests of eight bytes at a time, in one word, for the scanner and the writer.
///
/// Each test returns a mask with the top bit of a byte set where the test holds. Only the lowest set bit is exact: a borrow
/// or carry can set wrong bits above it.
@usableFromInline enum Words {
  @usableFromInline static let ones: UInt64 = 0x0101_0101_0101_0101
  @usableFromInline static let tops: UInt64 = 0x8080_8080_8080_8080

  @inlinable @inline(__always) static func load(_ p: UnsafePointer<UInt8>) -> UInt64 {
    UInt64(littleEndian: UnsafeRawPointer(p).loadUnaligned(as: UInt64.self))
  }

  /// The bytes that are not plain in a string: quotes, backslashes, control characters and non-ASCII bytes.
  ///
  /// Flipping bit 1 moves the quote next to the control characters, so that one subtraction finds both. A non-ASCII byte
  /// has its top bit set in one of the two differences.
  @inline(__always) static func stringStops(_ w: UInt64) -> UInt64 {
    let quoteOrControl = (w ^ (ones &* 0x02)) &- (ones &* 0x21)
    let solidus = (w ^ (ones &* 0x5C)) &- ones
    return (quoteOrControl | solidus) & tops
  }

  /// Skips 64 bytes at a time while all of them are plain in a string, and then perhaps 32. Returns the first position that was
  /// not skipped; fewer than 32 plain bytes follow it, unless another one is among the 64.
  @inline(never)
  static func skipPlain(_ start: UnsafePointer<UInt8>, _ end: UnsafePointer<UInt8>) -> UnsafePointer<UInt8> {
    var p = start
    while end - p >= 64 {
      guard (stopsOfFour(p) | stopsOfFour(p + 32)) & tops == 0 else { break }
      p += 64
    }
    return end - p >= 32 && stopsOfFour(p) & tops == 0 ? p + 32 : p
  }

  /// The test of `stringStops`, of 32 bytes at once: the top bits tell whether one of them is not plain.
  @inline(__always)
  private static func stopsOfFour(_ p: UnsafePointer<UInt8>) -> UInt64 {
    let w = UnsafeRawPointer(p).loadUnaligned(as: SIMD4<UInt64>.self)
    let quoteOrControl = (w ^ SIMD4(repeating: ones &* 0x02)) &- SIMD4(repeating: ones &* 0x21)
    let solidus = (w ^ SIMD4(repeating: ones &* 0x5C)) &- SIMD4(repeating: ones)
    let four = quoteOrControl | solidus
    let two = four.lowHalf | four.highHalf
    return two.x | two.y
  }

  /// The bytes that are not decimal digits.
  @inline(__always) static func nonDigits(_ w: UInt64) -> UInt64 {
    let x = w ^ (ones &* 0x30)
    return (x | (x &+ (ones &* 0x76))) & tops
  }

  /// The number with these eight decimal digits, the first one in the lowest byte.
  @inline(__always) static func number(ofDigits w: UInt64) -> UInt64 {
    // Pairs of digits, then of pairs, then of fours: each step multiplies the first of two by its place value and adds the other.
    let pairs = (((w & (ones &* 0x0F)) &* (10 << 8 | 1)) &>> 8) & 0x00FF_00FF_00FF_00FF
    let fours = ((pairs &* (100 << 16 | 1)) &>> 16) & 0x0000_FFFF_0000_FFFF
    return (fours &* (10_000 << 32 | 1)) &>> 32
  }

  /// The first 1 to 7 bytes at `p`, the first one in the lowest byte.
  @inline(__always) static func load(_ p: UnsafePointer<UInt8>, _ count: Int) -> UInt64 {
    if count >= 4 {
      return UInt64(half(p)) | UInt64(half(p + (count &- 4))) &<< UInt64(truncatingIfNeeded: (count &- 4) &* 8)
    }
    let middle = count &>> 1
    return UInt64(p[0]) | UInt64(p[middle]) &<< UInt64(truncatingIfNeeded: middle &* 8)
      | UInt64(p[count &- 1]) &<< UInt64(truncatingIfNeeded: (count &- 1) &* 8)
  }

  /// The number with the decimal digits in the 1 to 7 lowest bytes, whatever the others are.
  @inline(__always) static func number(ofDigits w: UInt64, _ count: Int) -> UInt64 {
    number(ofDigits: w &<< UInt64(truncatingIfNeeded: (8 &- count) &* 8))
  }

  /// The number with the decimal digits in the 1 to 7 lowest bytes of a word, followed by eight digits.
  @inline(__always) static func number(ofDigits w: UInt64, _ count: Int, _ last: UInt64) -> UInt64 {
    number(ofDigits: w, count) &* 100_000_000 &+ number(ofDigits: last)
  }

  /// The index, 0–7, of the lowest byte set in a mask that is not zero.
  @inline(__always) static func firstIndex(_ mask: UInt64) -> Int { mask.trailingZeroBitCount &>> 3 }

  /// The number of bytes at `p`, at most `count`, that equal the first bytes of a little-endian word.
  @inline(never)
  static func commonBytes(_ p: UnsafePointer<UInt8>, _ end: UnsafePointer<UInt8>, _ word: UInt64, _ count: Int) -> Int {
    var i = 0
    while i < count, p + i < end, p[i] == UInt8(truncatingIfNeeded: word &>> UInt64(i &* 8)) { i &+= 1 }
    return i
  }

  /// Whether two ranges of bytes are equal. Faster than `memcmp` for short ranges.
  @inlinable @inline(__always) static func equal(_ a: UnsafePointer<UInt8>, _ b: UnsafePointer<UInt8>, _ count: Int)
    -> Bool
  {
    if count >= 8 {
      var i = 0
      while i &+ 8 < count {
        if load(a + i) != load(b + i) { return false }
        i &+= 8
      }
      return load(a + (count &- 8)) == load(b + (count &- 8))
    }
    if count >= 4 { return half(a) == half(b) && half(a + (count &- 4)) == half(b + (count &- 4)) }
    var i = 0
    while i < count {
      if a[i] != b[i] { return false }
      i &+= 1
    }
    return true
  }

  @inlinable @inline(__always) static func half(_ p: UnsafePointer<UInt8>) -> UInt32 {
    UInt32(littleEndian: UnsafeRawPointer(p).loadUnaligned(as: UInt32.self))
  }
}

/// Hexadecimal digits, as in `\u` escapes.
enum Hex {
  /// The value of a digit, 0–15; 16 or more if the byte is not a hexadecimal digit.
  @inline(__always)
  static func value(_ byte: UInt8) -> UInt8 {
    let decimal = byte &- UInt8(ascii: "0")
    if decimal < 10 { return decimal }
    let letter = (byte | 0x20) &- UInt8(ascii: "a")
    return letter < 6 ? letter &+ 10 : 0xFF
  }

  /// The code unit of four digits at `p`, which the caller has checked.
  @inline(__always)
  static func unit(_ p: UnsafePointer<UInt8>) -> UInt32 {
    UInt32(value(p[0])) &<< 12 | UInt32(value(p[1])) &<< 8 | UInt32(value(p[2])) &<< 4 | UInt32(value(p[3]))
  }

  /// The lower-case digit for a value of 0–15.
  @inline(__always)
  static func digit(_ value: UInt8) -> UInt8 {
    value < 10 ? UInt8(ascii: "0") &+ value : UInt8(ascii: "a") &+ (value &- 10)
  }
}
