extension JSONNumber {
  /// The value when it is exactly an integer in the range of `Int`.
  public var int: Int? {
    guard digitCount > 0 else { return 0 }
    guard exponent >= digitCount, exponent <= 19 else { return nil }
    // Downwards, because Int.min has no positive counterpart.
    var value = 0
    for digit in digits {
      guard let next = Self.timesTenMinus(value, digit) else { return nil }
      value = next
    }
    for _ in digitCount..<exponent {
      guard let next = Self.timesTenMinus(value, 0) else { return nil }
      value = next
    }
    if isNegative { return value }
    return value == .min ? nil : -value
  }

  private static func timesTenMinus(_ value: Int, _ digit: UInt8) -> Int? {
    let (product, overflow) = value.multipliedReportingOverflow(by: 10)
    let (difference, underflow) = product.subtractingReportingOverflow(Int(digit))
    return overflow || underflow ? nil : difference
  }

  /// The value of a text of at most 18 bytes when it is digits with or without a minus sign before them.
  @inline(__always)
  static func shortInteger(_ text: UnsafeBufferPointer<UInt8>) -> Int? {
    guard var p = text.baseAddress, text.count <= 18 else { return nil }
    let end = p + text.count
    let negative = p < end && p.pointee == UInt8(ascii: "-")
    if negative { p += 1 }
    var value = 0
    while p < end {
      let digit = p.pointee &- UInt8(ascii: "0")
      guard digit < 10 else { return nil }
      value = value &* 10 &+ Int(digit)
      p += 1
    }
    return negative ? -value : value
  }
}
