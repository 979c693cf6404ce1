/// Numbers that look random and are the same in every run (SplitMix64).
struct Random: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64 = 1) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }

  /// A number in `0..<bound`, which is at least 1.
  mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }

  /// Lower-case words and spaces, so many bytes in all.
  mutating func words(_ length: Int) -> String {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(length)
    while bytes.count < length {
      let letter = below(30)
      bytes.append(letter < 26 ? UInt8(ascii: "a") + UInt8(letter) : UInt8(ascii: " "))
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
