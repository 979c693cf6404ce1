extension ScanPass {
  /// The string at `p`. A run of plain ASCII that ends with the closing quote is done here, all else by `StringTail`.
  @inline(__always)
  mutating func string() throws(JSONError) {
    let start = p
    p += 1
    while end - p >= 8 {
      let stops = Words.stringStops(Words.load(p))
      if stops == 0 {
        p += 8
        continue
      }
      p += Words.firstIndex(stops)
      guard p.pointee == UInt8(ascii: "\"") else { break }
      p += 1
      append(from: start, info: UInt32(JSONKind.string.rawValue))
      return
    }
    let tail = try StringTail.scan(p, end, base)
    p = tail.end
    append(from: start, info: UInt32(JSONKind.string.rawValue) | tail.flags)
  }

  /// The number at `p`, which is a digit or a minus sign (RFC 8259, section 6).
  @inline(__always)
  mutating func number() throws(JSONError) {
    let start = p
    if p.pointee == UInt8(ascii: "-") { p += 1 }
    guard p < end else { throw failure(.truncated) }
    if p.pointee == UInt8(ascii: "0") {
      p += 1
      guard p == end || !Self.isDigit(p.pointee) else { throw failure(.invalidNumber) }
    } else {
      try digits()
    }
    var info = UInt32(JSONKind.number.rawValue) | JSONToken.isPlainInteger
    if p < end, p.pointee == UInt8(ascii: ".") {
      info = UInt32(JSONKind.number.rawValue)
      p += 1
      try digits()
    }
    if p < end, p.pointee | 0x20 == UInt8(ascii: "e") {
      info = UInt32(JSONKind.number.rawValue)
      p += 1
      if p < end, p.pointee == UInt8(ascii: "+") || p.pointee == UInt8(ascii: "-") { p += 1 }
      try digits()
    }
    append(from: start, info: info)
  }

  /// One digit or more.
  @inline(__always)
  private mutating func digits() throws(JSONError) {
    guard p < end else { throw failure(.truncated) }
    guard Self.isDigit(p.pointee) else { throw failure(.invalidNumber) }
    p += 1
    while end - p >= 8 {
      let stops = Words.nonDigits(Words.load(p))
      if stops != 0 {
        p += Words.firstIndex(stops)
        return
      }
      p += 8
    }
    while p < end, Self.isDigit(p.pointee) { p += 1 }
  }

  /// `true`, `false` or `null`, whose first byte is at `p`; `word` is its spelling as a little-endian word.
  @inline(__always)
  mutating func literal(_ word: UInt64, _ count: Int, _ kind: JSONKind) throws(JSONError) {
    let left = end - p
    let mask = (UInt64(1) &<< UInt64(count &* 8)) &- 1
    guard left >= 8 ? Words.load(p) & mask == word : left >= count && Self.differs(p, word, count) == count else {
      let same = Self.differs(p, word, min(left, count))
      p += same
      throw failure(p == end ? .truncated : .unexpectedByte)
    }
    let start = p
    p += count
    append(from: start, info: UInt32(kind.rawValue))
  }

  /// Index of the first byte that is not the word's, `count` when all are.
  private static func differs(_ p: UnsafePointer<UInt8>, _ word: UInt64, _ count: Int) -> Int {
    for i in 0..<count where p[i] != UInt8(truncatingIfNeeded: word &>> UInt64(i &* 8)) { return i }
    return count
  }

  @inline(__always) static func isDigit(_ byte: UInt8) -> Bool { byte &- UInt8(ascii: "0") < 10 }
}
