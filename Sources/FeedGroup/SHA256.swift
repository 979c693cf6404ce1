/// The hash that JetStream's object store names its content by (FIPS 180-4). The package depends on no other, and the system has
/// no library for it that is always there.
struct SHA256 {
  private var state: [UInt32] = [
    0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19,
  ]
  private var block: [UInt8] = []
  private var count: UInt64 = 0

  private static let constants: [UInt32] = [
    0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5, 0x3956_c25b, 0x59f1_11f1, 0x923f_82a4, 0xab1c_5ed5,
    0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3, 0x72be_5d74, 0x80de_b1fe, 0x9bdc_06a7, 0xc19b_f174,
    0xe49b_69c1, 0xefbe_4786, 0x0fc1_9dc6, 0x240c_a1cc, 0x2de9_2c6f, 0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da,
    0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7, 0xc6e0_0bf3, 0xd5a7_9147, 0x06ca_6351, 0x1429_2967,
    0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc, 0x5338_0d13, 0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85,
    0xa2bf_e8a1, 0xa81a_664b, 0xc24b_8b70, 0xc76c_51a3, 0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070,
    0x19a4_c116, 0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5, 0x391c_0cb3, 0x4ed8_aa4a, 0x5b9c_ca4f, 0x682e_6ff3,
    0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208, 0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7, 0xc671_78f2,
  ]

  mutating func update(_ bytes: UnsafeRawBufferPointer) {
    count += UInt64(bytes.count)
    var rest = bytes[...]
    if !block.isEmpty {
      let taken = min(64 - block.count, rest.count)
      block.append(contentsOf: rest.prefix(taken))
      rest = rest.dropFirst(taken)
      if block.count < 64 { return }
      block.withUnsafeBytes { compress($0) }
      block.removeAll(keepingCapacity: true)
    }
    while rest.count >= 64 {
      compress(UnsafeRawBufferPointer(rebasing: rest.prefix(64)))
      rest = rest.dropFirst(64)
    }
    block.append(contentsOf: rest)
  }

  /// Returns the 32 bytes of the hash. Nothing may be added afterwards.
  mutating func finish() -> [UInt8] {
    let bits = count &* 8
    var padding: [UInt8] = [0x80]
    while (block.count + padding.count) % 64 != 56 { padding.append(0) }
    for shift in stride(from: 56, through: 0, by: -8) {
      padding.append(UInt8(truncatingIfNeeded: bits >> UInt64(shift)))
    }
    padding.withUnsafeBytes { update($0) }
    return state.flatMap { word in [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: word >> UInt32($0)) } }
  }

  private mutating func compress(_ bytes: UnsafeRawBufferPointer) {
    withUnsafeTemporaryAllocation(of: UInt32.self, capacity: 64) { words in
      for place in 0..<16 {
        words[place] = UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: place * 4, as: UInt32.self))
      }
      func rotate(_ word: UInt32, _ count: UInt32) -> UInt32 { word &>> count | word &<< (32 &- count) }
      for place in 16..<64 {
        let (early, late) = (words[place - 15], words[place - 2])
        let first = rotate(early, 7) ^ rotate(early, 18) ^ early &>> 3
        let second = rotate(late, 17) ^ rotate(late, 19) ^ late &>> 10
        words[place] = words[place - 16] &+ first &+ words[place - 7] &+ second
      }
      var (a, b, c, d) = (state[0], state[1], state[2], state[3])
      var (e, f, g, h) = (state[4], state[5], state[6], state[7])
      Self.constants.withUnsafeBufferPointer { constants in
        for place in 0..<64 {
          let sum = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)
          let first = h &+ sum &+ (e & f ^ ~e & g) &+ constants[place] &+ words[place]
          let second = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) &+ (a & b ^ a & c ^ b & c)
          (h, g, f, e, d, c, b, a) = (g, f, e, d &+ first, c, b, a, first &+ second)
        }
      }
      for (place, value) in [a, b, c, d, e, f, g, h].enumerated() { state[place] = state[place] &+ value }
    }
  }
}

/// Base64 with the alphabet for URLs and padding (RFC 4648 section 5), and decoding of both alphabets.
enum Base64 {
  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

  /// The value of each letter, of both alphabets in use; 255 for other bytes.
  private static let values: [UInt8] = {
    var values = [UInt8](repeating: 255, count: 256)
    for (value, letter) in alphabet.enumerated() { values[Int(letter)] = UInt8(value) }
    (values[Int(UInt8(ascii: "+"))], values[Int(UInt8(ascii: "/"))]) = (62, 63)
    return values
  }()

  static func encode(_ bytes: [UInt8]) -> String {
    String(unsafeUninitializedCapacity: (bytes.count + 2) / 3 * 4) { out in
      var (start, end) = (0, 0)
      while start < bytes.count {
        let left = bytes.count - start
        let (second, third) = (left > 1 ? bytes[start + 1] : 0, left > 2 ? bytes[start + 2] : 0)
        let word = Int(bytes[start]) << 16 | Int(second) << 8 | Int(third)
        out[end] = alphabet[word >> 18]
        out[end + 1] = alphabet[word >> 12 & 63]
        out[end + 2] = left > 1 ? alphabet[word >> 6 & 63] : UInt8(ascii: "=")
        out[end + 3] = left > 2 ? alphabet[word & 63] : UInt8(ascii: "=")
        (start, end) = (start + 3, end + 4)
      }
      return end
    }
  }

  static func decode(_ text: String) -> [UInt8]? {
    var (out, word, bits): ([UInt8], UInt32, UInt32) = ([], 0, 0)
    for byte in text.utf8 where byte != UInt8(ascii: "=") {
      let value = values[Int(byte)]
      if value == 255 { return nil }
      word = word << 6 | UInt32(value)
      bits += 6
      if bits >= 8 {
        bits -= 8
        out.append(UInt8(truncatingIfNeeded: word >> bits))
      }
    }
    return out
  }
}
