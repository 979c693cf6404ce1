import Glibc

extension ScanPass {
  @inline(__always) func offset(_ q: UnsafePointer<UInt8>) -> UInt32 { UInt32(truncatingIfNeeded: q - base) }

  @inline(__always) func failure(_ kind: JSONError.Kind) -> JSONError { JSONError(offset: p - base, kind: kind) }

  /// The token with an index below `capacity`.
  @inline(__always)
  func slot(_ index: Int) -> UnsafeMutablePointer<JSONToken> { tape.unsafelyUnwrapped + index }

  /// Writes a complete scalar that ends before `p`. `run` has made room.
  @inline(__always)
  mutating func append(from start: UnsafePointer<UInt8>, info: UInt32) {
    slot(used).initialize(
      to: JSONToken(offset: offset(start), length: UInt32(truncatingIfNeeded: p - start), span: 1, info: info))
    used &+= 1
  }

  /// Skips white space (RFC 8259, section 2) and remembers that there was some.
  @inline(__always)
  mutating func skipSpaces() {
    guard p < end, p.pointee <= 0x20 else { return }
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

  /// Doubles the tape. At most one token for every two bytes and every open container, so indices fit 32 bits.
  @inline(__always)
  mutating func growTape() throws(JSONError) {
    let wanted = max(64, capacity &* 2)
    guard let moved = Self.resized(tape, wanted) else { throw failure(.tooLarge) }
    tape = moved
    capacity = wanted
  }

  @inline(never)
  private static func resized(
    _ tape: UnsafeMutablePointer<JSONToken>?, _ capacity: Int
  ) -> UnsafeMutablePointer<JSONToken>? {
    realloc(tape, capacity &* MemoryLayout<JSONToken>.stride)?.assumingMemoryBound(to: JSONToken.self)
  }
}
