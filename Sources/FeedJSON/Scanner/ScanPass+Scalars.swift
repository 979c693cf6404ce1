extension ScanPass {
  /// The string at `p`. A run of plain ASCII that ends with the closing quote is done here, all else by `StringTail`.
  @inline(__always)
  mutating func string() -> Bool {
    let start = p
    p += 1
    while p <= lastWord {
      let stops = Words.stringStops(Words.load(p))
      if _slowPath(stops == 0) {
        p += 8
        continue
      }
      p += Words.firstIndex(stops)
      guard _fastPath(p.pointee == UInt8(ascii: "\"")) else { break }
      p += 1
      append(from: start, info: UInt32(JSONKind.string.rawValue))
      return true
    }
    let tail = StringTail.scan(p, end)
    p = tail.end
    append(from: start, info: UInt32(JSONKind.string.rawValue) | tail.flags)
    return !tail.isWrong || refuse(tail.fault)
  }

  /// The number at `p`. A plain integer that something follows is done here, all else by `NumberTail`.
  @inline(__always)
  mutating func number() -> Bool {
    let start = p
    if start.pointee == UInt8(ascii: "-") { p += 1 }
    let first = p
    while _fastPath(p <= lastWord) {
      let stops = Words.nonDigits(Words.load(p))
      if stops == 0 {
        p += 8
        continue
      }
      p += Words.firstIndex(stops)
      let byte = p.pointee
      guard _fastPath(byte == UInt8(ascii: ",") || (byte != UInt8(ascii: ".") && byte | 0x20 != UInt8(ascii: "e"))),
        _fastPath(p > first), _fastPath(first.pointee != UInt8(ascii: "0") || p == first + 1)
      else { break }
      append(from: start, info: UInt32(JSONKind.number.rawValue) | JSONToken.isPlainInteger)
      return true
    }
    let tail = NumberTail.scan(start, end)
    p = tail.end
    append(from: start, info: UInt32(JSONKind.number.rawValue) | tail.flags)
    return !tail.isWrong || refuse(tail.fault)
  }

  /// `true`, `false` or `null`, as the first byte, at `p`, says.
  @inline(__always)
  mutating func literal(_ byte: UInt8) -> Bool {
    var (word, count, kind) = (0x6575_7274 as UInt64, 4, JSONKind.true)
    if byte == UInt8(ascii: "n") { (word, kind) = (0x6C6C_756E, .null) }
    if byte == UInt8(ascii: "f") { (word, count, kind) = (0x65_736C_6166, 5, .false) }
    let start = p
    if _slowPath(p > lastWord) || (Words.load(p) ^ word) &<< UInt64(64 &- 8 &* count) != 0 {
      let same = Words.commonBytes(p, end, word, count)
      p += same
      guard same == count else { return refuse(p == end ? .truncated : .unexpectedByte) }
    } else {
      p += count
    }
    append(from: start, info: UInt32(kind.rawValue))
    return true
  }
}
