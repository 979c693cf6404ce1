import TestSupport

/// Small damage to a text.
enum Mutation {
  /// Bytes that mean something to a scanner, and ends of ranges.
  static let bytes: [UInt8] =
    Array(#"{}[]:,"\/ truefalsn0123456789.-+eEu"#.utf8) + [0x00, 0x1F, 0x7F, 0x80, 0xBF, 0xC2, 0xE0, 0xED, 0xF4, 0xFF]

  /// The text with one to three places changed.
  static func of(_ text: [UInt8], _ random: inout SeededRandom) -> [UInt8] {
    var text = text
    for _ in 0..<Int.random(in: 1...3, using: &random) where !text.isEmpty {
      let at = Int.random(in: 0..<text.count, using: &random)
      let byte = bytes[Int.random(in: 0..<bytes.count, using: &random)]
      switch random.next() % 5 {
      case 0: text.remove(at: at)
      case 1: text.insert(byte, at: at)
      case 2: text.swapAt(at, Int.random(in: 0..<text.count, using: &random))
      case 3: text[at] ^= 1 << UInt8(random.next() % 8)
      default: text[at] = byte
      }
    }
    return text
  }
}
