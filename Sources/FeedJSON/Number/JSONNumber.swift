/// A JSON number taken apart without rounding: sign, significant digits, power of ten. Points into the text, which it
/// does not own.
///
/// The value is 0.d₁d₂…dₙ × 10^exponent with d₁ and dₙ not zero; zero has no digits. A written
/// exponent beyond ±2⁶² is taken as ±2⁶²: no text has digits enough to make up for it.
public struct JSONNumber {
  /// Whether the value is below zero; false for -0.
  public private(set) var isNegative = false
  /// Number of digits from the first to the last that is not zero, 0 for zero.
  public private(set) var digitCount = 0
  /// Power of ten of the digit before the first significant one.
  public private(set) var exponent = 0
  /// The first significant digit; the decimal point may stand between the digits.
  let firstDigit: UnsafePointer<UInt8>

  private static let exponentLimit = 1 << 62

  /// - Parameter text: a number of RFC 8259. Other text gives some number; nothing is read outside it.
  public init(_ text: UnsafeRawBufferPointer) {
    self = text.withMemoryRebound(to: UInt8.self) { JSONNumber($0) }
  }

  init(_ text: UnsafeBufferPointer<UInt8>) {
    guard var p = text.baseAddress else {
      firstDigit = Self.zero.utf8Start
      return
    }
    let end = p + text.count
    let negative = p < end && p.pointee == UInt8(ascii: "-")
    if negative { p += 1 }
    var (digits, integerDigits) = (0, -1)
    var (first, firstIndex, lastIndex) = (p, -1, -1)
    while p < end {
      let byte = p.pointee
      if byte == UInt8(ascii: ".") {
        integerDigits = digits
      } else if NumberTail.isDigit(byte) {
        if byte != UInt8(ascii: "0") {
          if firstIndex < 0 { (first, firstIndex) = (p, digits) }
          lastIndex = digits
        }
        digits &+= 1
      } else {
        break
      }
      p += 1
    }
    firstDigit = first
    guard firstIndex >= 0 else { return }
    isNegative = negative
    digitCount = lastIndex &- firstIndex &+ 1
    let shift = (integerDigits < 0 ? digits : integerDigits) &- firstIndex
    exponent = shift &+ Self.power(p, end)
  }

  /// The exponent part at `p`, 0 when there is none.
  private static func power(_ start: UnsafePointer<UInt8>, _ end: UnsafePointer<UInt8>) -> Int {
    var p = start
    guard p < end, p.pointee | 0x20 == UInt8(ascii: "e") else { return 0 }
    p += 1
    guard p < end else { return 0 }
    let negative = p.pointee == UInt8(ascii: "-")
    if negative || p.pointee == UInt8(ascii: "+") { p += 1 }
    var value = 0
    while p < end, NumberTail.isDigit(p.pointee) {
      let digit = Int(p.pointee &- UInt8(ascii: "0"))
      value = value <= exponentLimit / 10 ? min(value &* 10 &+ digit, exponentLimit) : exponentLimit
      p += 1
    }
    return negative ? -value : value
  }

  private static let zero: StaticString = "0"

  /// The digits, 0–9 each, without the decimal point.
  var digits: Digits { Digits(p: firstDigit, left: digitCount) }

  struct Digits: Sequence, IteratorProtocol {
    var p: UnsafePointer<UInt8>
    var left: Int

    @inline(__always) mutating func next() -> UInt8? {
      guard left > 0 else { return nil }
      if p.pointee == UInt8(ascii: ".") { p += 1 }
      left &-= 1
      defer { p += 1 }
      return p.pointee &- UInt8(ascii: "0")
    }
  }
}

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

extension JSONNumber {
  /// Orders two numbers of RFC 8259 by their exact values: -1, 0 or 1. O(digits).
  public static func compare(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Int {
    a.withMemoryRebound(to: UInt8.self) { a in
      b.withMemoryRebound(to: UInt8.self) { b in
        if let left = shortInteger(a), let right = shortInteger(b) {
          return left == right ? 0 : left < right ? -1 : 1
        }
        return JSONNumber(a).compare(JSONNumber(b))
      }
    }
  }

  /// Orders by exact value: -1, 0 or 1.
  public func compare(_ other: JSONNumber) -> Int {
    let (mine, theirs) = (sign, other.sign)
    if mine != theirs { return mine < theirs ? -1 : 1 }
    return mine * compareMagnitude(other)
  }

  /// -1, 0 or 1.
  public var sign: Int { digitCount == 0 ? 0 : isNegative ? -1 : 1 }

  private func compareMagnitude(_ other: JSONNumber) -> Int {
    if exponent != other.exponent { return exponent < other.exponent ? -1 : 1 }
    var (left, right) = (digits, other.digits)
    while let a = left.next(), let b = right.next() {
      if a != b { return a < b ? -1 : 1 }
    }
    // No trailing zeros are counted, so the one with more digits is more.
    return (digitCount &- other.digitCount).signum()
  }
}
