extension ScanPass {
  @inline(__always) func offset(_ q: UnsafePointer<UInt8>) -> UInt32 { UInt32(truncatingIfNeeded: q - base) }

  /// Notes why the text is refused at `p`; always false.
  @inline(__always)
  mutating func refuse(_ kind: JSONError.Kind) -> Bool {
    fault = kind
    return false
  }

  /// Writes a complete scalar that ends before `p`. `run` has made room.
  @inline(__always)
  mutating func append(from start: UnsafePointer<UInt8>, info: UInt32) {
    next.initialize(
      to: JSONToken(offset: offset(start), length: UInt32(truncatingIfNeeded: p - start), span: 1, info: info))
    next += 1
  }

  /// Skips white space (RFC 8259, section 2) and remembers that there was some.
  @inline(__always)
  mutating func skipSpaces() {
    guard _slowPath(p < end && p.pointee <= 0x20) else { return }
    let q = Self.afterSpaces(p, end)
    if q > p { lastSpace = q - 1 }
    p = q
  }

  @inline(never)
  private static func afterSpaces(
    _ start: UnsafePointer<UInt8>, _ end: UnsafePointer<UInt8>
  ) -> UnsafePointer<UInt8> {
    var q = start
    while q < end, q.pointee == 0x20 || q.pointee == 0x0A || q.pointee == 0x0D || q.pointee == 0x09 { q += 1 }
    return q
  }

  /// Makes the tape larger; false when there is no memory for it.
  @inline(__always)
  mutating func growTape() -> Bool {
    let used = next - tape.start
    guard let larger = tape.doubled() else { return false }
    tape = larger
    next = larger.start + used
    return true
  }
}
