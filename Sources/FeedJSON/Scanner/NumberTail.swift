/// A number in all its forms (RFC 8259, section 6), for those that `ScanPass` does not do itself.
struct NumberTail {
  /// Behind the number, or where it is wrong.
  private(set) var end: UnsafePointer<UInt8>
  /// Flags for the token.
  private(set) var flags = JSONToken.isPlainInteger
  private(set) var isWrong = false
  /// Why the number is refused, when it is wrong.
  private(set) var fault = JSONError.Kind.invalidNumber

  @inline(never)
  static func scan(_ start: UnsafePointer<UInt8>, _ limit: UnsafePointer<UInt8>) -> NumberTail {
    var number = NumberTail(end: start)
    guard isDigit(start.pointee) || start.pointee == UInt8(ascii: "-") else {
      (number.isWrong, number.fault) = (true, .unexpectedByte)
      return number
    }
    if start.pointee == UInt8(ascii: "-") { number.end += 1 }
    if number.end < limit, number.end.pointee == UInt8(ascii: "0") {
      number.end += 1
      number.isWrong = number.end < limit && isDigit(number.end.pointee)
    } else {
      number.skipDigits(limit)
    }
    number.skipFraction(limit)
    number.skipExponent(limit)
    return number
  }

  private mutating func skipFraction(_ limit: UnsafePointer<UInt8>) {
    guard !isWrong, end < limit, end.pointee == UInt8(ascii: ".") else { return }
    flags = 0
    end += 1
    skipDigits(limit)
  }

  private mutating func skipExponent(_ limit: UnsafePointer<UInt8>) {
    guard !isWrong, end < limit, end.pointee | 0x20 == UInt8(ascii: "e") else { return }
    flags = 0
    end += 1
    if end < limit, end.pointee == UInt8(ascii: "+") || end.pointee == UInt8(ascii: "-") { end += 1 }
    skipDigits(limit)
  }

  /// One digit or more.
  private mutating func skipDigits(_ limit: UnsafePointer<UInt8>) {
    let start = end
    while limit - end >= 8 {
      let stops = Words.nonDigits(Words.load(end))
      guard stops == 0 else {
        end += Words.firstIndex(stops)
        break
      }
      end += 8
    }
    while end < limit, Self.isDigit(end.pointee) { end += 1 }
    guard end == start else { return }
    isWrong = true
    if end == limit { fault = .truncated }
  }

  @inline(__always) static func isDigit(_ byte: UInt8) -> Bool { byte &- UInt8(ascii: "0") < 10 }
}
