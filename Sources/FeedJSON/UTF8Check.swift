/// Strict UTF-8 (RFC 3629): no overlong forms, no surrogates, nothing beyond U+10FFFF.
enum UTF8Check {
  /// Length, 2–4, of the well-formed sequence that begins at `p` with a byte that is not ASCII; 0 when there is none.
  @inline(__always)
  static func sequenceLength(_ p: UnsafePointer<UInt8>, _ end: UnsafePointer<UInt8>) -> Int {
    let lead = p[0]
    let left = end - p
    if lead < 0xE0 {
      return lead >= 0xC2 && left >= 2 && isContinuation(p[1]) ? 2 : 0
    }
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
