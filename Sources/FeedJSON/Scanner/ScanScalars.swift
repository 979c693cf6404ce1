/// The scanner of numbers in all forms (RFC 8259, section 6), for those that `ScanPass` does not scan itself.
struct NumberTail {
  /// The end of the number, or the position of the error.
  private(set) var end: UnsafePointer<UInt8>
  private(set) var flags = JSONToken.isPlainInteger
  private(set) var isWrong = false
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

/// The scanner of strings from their first byte that is not plain: escapes, non-ASCII text, and the last bytes of a text.
struct StringTail {
  /// The position after the closing quote, or that of the error.
  private(set) var end: UnsafePointer<UInt8>
  private(set) var flags: UInt32 = 0
  private(set) var isWrong = false
  private(set) var fault = JSONError.Kind.truncated
  /// Whether the rest of the string is left.
  private(set) var isPaused = false

  /// - Parameters:
  ///   - flags: those of the tail before `start`.
  ///   - most: about the bytes after which the scan pauses.
  @inline(never)
  static func scan(
    _ start: UnsafePointer<UInt8>, _ end: UnsafePointer<UInt8>, flags: UInt32 = 0, most: Int = .max
  ) -> StringTail {
    var tail = StringTail(end: start)
    tail.flags = flags
    let stop = end - start > most ? start + most : end
    while tail.end < stop {
      if end - tail.end >= 8 {
        let stops = Words.stringStops(Words.load(tail.end))
        if stops == 0 {
          tail.end = Words.skipPlain(tail.end + 8, end)
          continue
        }
        tail.end += Words.firstIndex(stops)
      }
      let byte = tail.end.pointee
      if byte >= 0x80 {
        guard tail.skipMultibyte(end, until: stop) else { return tail }
      } else if byte == UInt8(ascii: "\"") {
        tail.end += 1
        return tail
      } else if byte == UInt8(ascii: "\\") {
        guard tail.skipEscape(end) else { return tail }
      } else if byte < 0x20 {
        _ = tail.refuse(.invalidString)
        return tail
      } else {
        tail.end += 1
      }
    }
    tail.isPaused = stop < end
    if !tail.isPaused { _ = tail.refuse(.truncated) }
    return tail
  }

  /// Records an error. Returns false.
  private mutating func refuse(_ kind: JSONError.Kind) -> Bool {
    (isWrong, fault) = (true, kind)
    return false
  }

  /// Skips a run of multi-byte sequences that begin before `stop`.
  @inline(__always)
  private mutating func skipMultibyte(_ limit: UnsafePointer<UInt8>, until stop: UnsafePointer<UInt8>) -> Bool {
    repeat {
      let length = UTF8Check.sequenceLength(end, limit)
      guard length > 0 else { return refuse(.invalidUTF8) }
      end += length
    } while end < stop && end.pointee >= 0x80
    return true
  }

  /// Skips an escape (RFC 8259, section 7). The grammar allows unpaired surrogates.
  @inline(__always)
  private mutating func skipEscape(_ limit: UnsafePointer<UInt8>) -> Bool {
    flags = JSONToken.hasEscapes
    var length = 2
    if limit - end >= 2, end[1] == UInt8(ascii: "u") {
      length = 6
      for i in 2..<min(6, limit - end) where Hex.value(end[i]) > 15 { return refuse(.invalidEscape) }
    } else if limit - end >= 2, !Self.isShortEscape(end[1]) {
      return refuse(.invalidEscape)
    }
    guard limit - end >= length else {
      end = limit
      return refuse(.truncated)
    }
    end += length
    return true
  }

  @inline(__always)
  private static func isShortEscape(_ letter: UInt8) -> Bool {
    switch letter {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
      UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
      true
    default: false
    }
  }
}

/// Validation of strict UTF-8 (RFC 3629): no overlong forms, no surrogates, nothing above U+10FFFF.
enum UTF8Check {
  /// The length, 2–4, of the well-formed sequence at `p`, whose first byte is not ASCII; 0 if it is not well formed.
  @inline(__always)
  static func sequenceLength(_ p: UnsafePointer<UInt8>, _ end: UnsafePointer<UInt8>) -> Int {
    let lead = p[0]
    let left = end - p
    if lead < 0xE0 { return lead >= 0xC2 && left >= 2 && isContinuation(p[1]) ? 2 : 0 }
    if lead < 0xF0 {
      guard left >= 3, isContinuation(p[1]), isContinuation(p[2]) else { return 0 }
      if lead == 0xE0 && p[1] < 0xA0 { return 0 }
      if lead == 0xED && p[1] > 0x9F { return 0 }
      return 3
    }
    guard lead <= 0xF4, left >= 4, isContinuation(p[1]), isContinuation(p[2]), isContinuation(p[3]) else { return 0 }
    if lead == 0xF0 && p[1] < 0x90 { return 0 }
    if lead == 0xF4 && p[1] > 0x8F { return 0 }
    return 4
  }

  @inline(__always) static func isContinuation(_ byte: UInt8) -> Bool { byte & 0xC0 == 0x80 }
}
