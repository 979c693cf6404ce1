/// The exact value of a JSON number: sign, significant digits, power of ten. It points into the text, which it does not own.
///
/// The value is 0.d₁d₂…dₙ × 10^exponent, where d₁ and dₙ are not zero. Zero has no digits. A written exponent beyond ±2⁶²
/// counts as ±2⁶², which no text has enough digits to offset.
public struct JSONNumber {
  /// Whether the value is negative; false for -0.
  public private(set) var isNegative = false
  /// The number of digits from the first to the last non-zero digit; 0 for zero.
  public private(set) var digitCount = 0
  /// The power of ten by which 0.d₁d₂…dₙ is multiplied.
  public private(set) var exponent = 0
  /// The first significant digit. The decimal point can be between the digits.
  let firstDigit: UnsafePointer<UInt8>

  private static let exponentLimit = 1 << 62
  /// The bytes of a part of which eight digits are read at a time.
  private static let longPart = 32

  /// - Parameter text: a number of RFC 8259. For other text the value is unspecified, but nothing outside it is read.
  public init(_ text: UnsafeRawBufferPointer) { self = text.withMemoryRebound(to: UInt8.self) { JSONNumber($0) } }

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
      while end - p >= Self.longPart {
        let word = Words.load(p)
        guard Words.nonDigits(word) == 0 else { break }
        // The first digit is in the lowest byte.
        let nonZero = word ^ (Words.ones &* 0x30)
        if nonZero != 0 {
          let place = nonZero.trailingZeroBitCount / 8
          if firstIndex < 0 { (first, firstIndex) = (p + place, digits + place) }
          lastIndex = digits + 7 - nonZero.leadingZeroBitCount / 8
        }
        digits &+= 8
        p += 8
      }
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

  /// The value of the exponent part at `start`, at most ±``exponentLimit``; 0 if there is none.
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

  /// The values of the digits, 0–9, without the decimal point.
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
  /// The value if it is an integer in the range of `Int`.
  public var int: Int? {
    guard digitCount > 0 else { return 0 }
    guard exponent >= digitCount, exponent <= 19 else { return nil }
    // Accumulated as a negative number, because Int.min has no positive counterpart.
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

  /// The value of a text of at most 18 bytes if it is an optional minus sign and digits.
  @inline(__always)
  static func shortInteger(_ text: UnsafeBufferPointer<UInt8>) -> Int? {
    guard var p = text.baseAddress, text.count <= 18 else { return nil }
    let end = p + text.count
    let negative = p < end && p.pointee == UInt8(ascii: "-")
    if negative { p += 1 }
    let count = end - p
    if _fastPath(count > 0 && count < 8) {
      let word = Words.load(p, count)
      // The bytes after the digits are filled with digits.
      let filled = word | (Words.ones &* 0x30) &<< UInt64(truncatingIfNeeded: count &* 8)
      guard Words.nonDigits(filled) == 0 else { return nil }
      let value = Int(truncatingIfNeeded: Words.number(ofDigits: word, count))
      return negative ? -value : value
    }
    if _fastPath(count > 8 && count < 16) {
      let (first, last) = (Words.load(p), Words.load(end - 8))
      guard (Words.nonDigits(first) | Words.nonDigits(last)) == 0 else { return nil }
      let value = Int(truncatingIfNeeded: Words.number(ofDigits: first, count &- 8, last))
      return negative ? -value : value
    }
    guard count > 0 else { return nil }
    var value = 0
    while end - p >= 8 {
      let word = Words.load(p)
      guard Words.nonDigits(word) == 0 else { return nil }
      value = value &* 100_000_000 &+ Int(truncatingIfNeeded: Words.number(ofDigits: word))
      p += 8
    }
    while p < end {
      let digit = p.pointee &- UInt8(ascii: "0")
      guard digit < 10 else { return nil }
      value = value &* 10 &+ Int(digit)
      p += 1
    }
    return negative ? -value : value
  }

  /// The value of the optional minus sign and at most 18 digits at the beginning of a text that goes on after them; nil if
  /// it begins otherwise.
  @inline(__always)
  public static func leadingInteger(of text: UnsafeRawBufferPointer) -> Int? {
    guard let start = text.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return nil }
    let end = start + text.count
    var p = start
    let negative = p < end && p.pointee == UInt8(ascii: "-")
    if negative { p += 1 }
    let digits = p
    var value = 0
    if _fastPath(end - p >= 16) {
      let first = Words.load(p)
      let (stops, moreStops) = (Words.nonDigits(first), Words.nonDigits(Words.load(p + 8)))
      if stops != 0 {
        let count = Words.firstIndex(stops)
        if count == 0 { return nil }
        value = Int(truncatingIfNeeded: Words.number(ofDigits: first, count))
        return negative ? -value : value
      }
      let count = Words.firstIndex(moreStops)
      if moreStops != 0 && count > 0 {
        value = Int(truncatingIfNeeded: Words.number(ofDigits: first, count, Words.load(p + count)))
        return negative ? -value : value
      }
    }
    while p < end {
      let digit = p.pointee &- UInt8(ascii: "0")
      if digit > 9 { break }
      value = value &* 10 &+ Int(digit)
      p += 1
    }
    guard p > digits, p - start <= 18, p < end else { return nil }
    return negative ? -value : value
  }
}

extension JSONNumber {
  /// The value of at most 18 digits; nil for other texts.
  public static func integer(ofDigits text: UnsafeRawBufferPointer) -> Int? {
    text.withMemoryRebound(to: UInt8.self) { shortInteger($0) }
  }

  /// The value as text, the same for equal values: with all digits as a decimal fraction if it is from 10⁻⁶ to below 10²¹,
  /// otherwise as `1.5e300`, with an exponent of at most ±2⁶²: `10e4611686018427387904`.
  public var canonicalText: String { ByteBuffer.text { appendCanonicalText(to: &$0) } }

  /// Whether bytes are the ``canonicalText`` of a number. O(bytes), without allocation for most other texts.
  public static func isCanonical(_ text: UnsafeRawBufferPointer) -> Bool {
    guard isNumber(text) else { return false }
    var canonical = ByteBuffer()
    JSONNumber(text).appendCanonicalText(to: &canonical)
    return canonical.bytes.elementsEqual(text)
  }

  /// Whether bytes are a JSON number (RFC 8259, section 6).
  private static func isNumber(_ text: UnsafeRawBufferPointer) -> Bool {
    text.withMemoryRebound(to: UInt8.self) { text in
      guard let start = text.baseAddress, !text.isEmpty else { return false }
      let number = NumberTail.scan(start, start + text.count)
      return !number.isWrong && number.end == start + text.count
    }
  }

  public func appendCanonicalText(to buffer: inout ByteBuffer) {
    Self.appendCanonicalText(digits, count: digitCount, exponent: exponent, isNegative: isNegative, to: &buffer)
  }

  /// Appends the canonical text of 0.d₁d₂…dₙ × 10^exponent; of 0 if there are no digits.
  /// - Parameter digits: the values of the digits, 0–9. The first and the last are not zero.
  static func appendCanonicalText(
    _ digits: some Sequence<UInt8>, count: Int, exponent: Int, isNegative: Bool, to buffer: inout ByteBuffer
  ) {
    guard count > 0 else { return buffer.append(UInt8(ascii: "0")) }
    if isNegative { buffer.append(UInt8(ascii: "-")) }
    let power = (-5...21).contains(exponent) ? 0 : min(max(exponent &- 1, -exponentLimit), exponentLimit)
    // The digits before the decimal point; if below 1, the zeros behind it.
    let point = exponent &- power
    if point < 1 {
      buffer.append("0.")
      for _ in point..<0 { buffer.append(UInt8(ascii: "0")) }
    }
    var left = point < 1 ? -1 : point
    for digit in digits {
      if left == 0 { buffer.append(UInt8(ascii: ".")) }
      buffer.append(digit &+ UInt8(ascii: "0"))
      left &-= 1
    }
    while left > 0 {
      buffer.append(UInt8(ascii: "0"))
      left &-= 1
    }
    guard power != 0 else { return }
    buffer.append(UInt8(ascii: "e"))
    buffer.append(integer: power)
  }

  /// Compares two numbers of RFC 8259 by exact value: -1, 0 or 1. O(digits).
  public static func compare(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Int {
    a.withMemoryRebound(to: UInt8.self) { a in
      b.withMemoryRebound(to: UInt8.self) { b in
        if let left = shortInteger(a), let right = shortInteger(b) { return left == right ? 0 : left < right ? -1 : 1 }
        return JSONNumber(a).compare(JSONNumber(b))
      }
    }
  }

  /// Compares by exact value: -1, 0 or 1.
  public func compare(_ other: JSONNumber) -> Int {
    let (mine, theirs) = (sign, other.sign)
    if mine != theirs { return mine < theirs ? -1 : 1 }
    return mine * compareMagnitude(other)
  }

  /// The sign of the value: -1, 0 or 1.
  public var sign: Int { digitCount == 0 ? 0 : isNegative ? -1 : 1 }

  private func compareMagnitude(_ other: JSONNumber) -> Int {
    if exponent != other.exponent { return exponent < other.exponent ? -1 : 1 }
    var (left, right) = (digits, other.digits)
    while let a = left.next(), let b = right.next() { if a != b { return a < b ? -1 : 1 } }
    // There are no trailing zeros, so the number with more digits is greater.
    return (digitCount &- other.digitCount).signum()
  }
}
