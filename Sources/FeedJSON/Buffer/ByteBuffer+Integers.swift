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
    let length = Self.digitCount(value)
    reserve(length)
    var place = block + (used &+ length)
    var rest = value
    repeat {
      let (quotient, digit) = rest.quotientAndRemainder(dividingBy: 10)
      place -= 1
      place.pointee = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: digit)
      rest = quotient
    } while rest != 0
    used &+= length
  }

  private static func digitCount(_ value: UInt64) -> Int {
    var (count, limit) = (1, UInt64(10))
    while count < 20, value >= limit {
      count &+= 1
      limit = limit &* 10
    }
    return count
  }
}
