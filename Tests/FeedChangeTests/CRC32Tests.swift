import TestSupport
import Testing

@testable import FeedChange

struct CRC32Tests {
  /// CRC-32 one bit at a time, directly from its definition.
  private func naive(_ bytes: [UInt8]) -> UInt32 {
    var crc: UInt32 = 0xFFFF_FFFF
    for byte in bytes {
      crc ^= UInt32(byte)
      for _ in 0..<8 {
        crc = (crc >> 1) ^ (crc & 1 == 0 ? 0 : 0xEDB8_8320)
      }
    }
    return ~crc
  }

  private func digest(_ text: String) -> String {
    var crc = CRC32()
    crc.update(Array(text.utf8))
    return crc.hex8
  }

  @Test func knownValues() {
    expectEqual(digest(""), "00000000")
    expectEqual(digest("123456789"), "cbf43926")
    expectEqual(digest("The quick brown fox jumps over the lazy dog"), "414fa339")
    expectEqual(digest("feed2414"), "000ad412")
  }

  @Test func everyLengthAndAlignment() {
    var random = SeededRandom(seed: 7)
    let bytes = (0..<320).map { _ in UInt8.random(in: 0...255, using: &random) }
    for start in 0..<9 {
      for end in start...bytes.count {
        var (crc, other) = (CRC32(), CRC32())
        bytes.withUnsafeBytes { bytes in
          crc.update(UnsafeRawBufferPointer(rebasing: bytes[start..<end]))
          other.updateByTable(UnsafeRawBufferPointer(rebasing: bytes[start..<end]))
        }
        let value = naive(Array(bytes[start..<end]))
        expect(crc.value == value && other.value == value, "bytes \(start)..<\(end)")
      }
    }
  }

  @Test func incrementalDigestEqualsDigestOfWhole() {
    var random = SeededRandom(seed: UInt64.random(in: 0...UInt64.max))
    for _ in 0..<200 {
      let bytes = (0..<Int.random(in: 0..<300, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
      var crc = CRC32()
      var place = 0
      while place < bytes.count {
        let end = min(bytes.count, place + Int.random(in: 1..<20, using: &random))
        if end == place + 1 { crc.update(bytes[place]) } else { crc.update(Array(bytes[place..<end])) }
        place = end
      }
      expectEqual(crc.value, naive(bytes), "seed \(random.seed)")
    }
  }
}

extension CRC32 {
  fileprivate mutating func update(_ bytes: [UInt8]) {
    bytes.withUnsafeBytes { update($0) }
  }
}
