extension ByteBuffer {
  /// The decimal digits of an integer, with a minus sign when it is below zero.
  public mutating func append(integer value: Int) {
    if value < 0 { append(UInt8(ascii: "-")) }
    append(integer: UInt64(value.magnitude))
  }

  /// The decimal digits of an integer.
  @inlinable public mutating func append(integer value: UInt32) { append(integer: UInt64(value)) }

  /// The decimal digits of an integer.
  public mutating func append(integer value: UInt64) {
    if value < 10 { return append(UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: value)) }
    let length = Self.digitCount(value)
    reserve(length)
    var place = block + (used &+ length)
    var rest = value
    // Two digits a step: there are half as many divisions, each of which waits for the one before.
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

  /// The decimal digits of 0 to 99, two each.
  private static let pairs: StaticString = """
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
