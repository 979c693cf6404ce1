/// The eight tables of 256 words that ``CRC32`` looks up, made once a process at first use and never changed after.
struct CRC32Tables: @unchecked Sendable {
  static let shared = CRC32Tables()

  /// Table k starts at word 256 * k and advances a byte past k more zero bytes.
  let base: UnsafePointer<UInt32>

  private init() {
    let words = UnsafeMutablePointer<UInt32>.allocate(capacity: 8 * 256)
    for index in 0..<256 {
      var word = UInt32(index)
      for _ in 0..<8 {
        word = (word >> 1) ^ (word & 1 == 0 ? 0 : 0xEDB8_8320)
      }
      words[index] = word
    }
    for index in 256..<8 * 256 {
      let shorter = words[index - 256]
      words[index] = (shorter >> 8) ^ words[Int(shorter & 0xFF)]
    }
    base = UnsafePointer(words)
  }

  /// The state after eight bytes, given as a little-endian word whose low half already has the old state mixed in.
  @inline(__always)
  static func fold(_ word: UInt64, _ table: UnsafePointer<UInt32>) -> UInt32 {
    @inline(__always) func part(_ byte: UInt64) -> UInt32 {
      table[Int(truncatingIfNeeded: 256 * (7 - byte) + (word >> (8 * byte)) & 0xFF)]
    }
    return (part(0) ^ part(1)) ^ (part(2) ^ part(3)) ^ (part(4) ^ part(5)) ^ (part(6) ^ part(7))
  }
}
