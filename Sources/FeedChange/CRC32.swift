import CProcessor
import FeedJSON

/// An incremental CRC-32 as in zlib, gzip and PNG (polynomial 0xEDB88320, reflected).
///
/// It is the digest of the method `verify`. Where the processor can multiply without carry, long inputs take a fraction of a
/// cycle a byte. Others are processed eight bytes at a time with eight tables ("slicing by 8"), about one byte a cycle.
///
///     var digest = CRC32()
///     digest.update(bytes)
///     digest.hex8  // "cbf43926" for the bytes "123456789"
public struct CRC32: Sendable, Equatable {
  @usableFromInline var state: UInt32 = 0xFFFF_FFFF

  /// Creates the digest of no bytes.
  @inlinable public init() {}

  /// The digest of the bytes given to `update` so far. O(1).
  @inlinable public var value: UInt32 { ~state }
  /// The digest as the protocol writes it: eight lower-case hexadecimal digits.
  public var hex8: String { padded(value, to: 8, radix: 16) }

  public mutating func update(_ byte: UInt8) {
    state = (state >> 8) ^ CRC32Tables.shared.base[Int((state ^ UInt32(byte)) & 0xFF)]
  }

  /// Appends bytes. O(n).
  public mutating func update(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.count >= 64, Self.hasInstruction else { return updateByTable(bytes) }
    let long = bytes.count & ~15
    state = processor_crc32(state, bytes.baseAddress, long)
    updateByTable(UnsafeRawBufferPointer(rebasing: bytes[long...]))
  }

  private static let hasInstruction = processor_has_crc32() != 0

  /// The same on any processor.
  mutating func updateByTable(_ bytes: UnsafeRawBufferPointer) {
    let table = CRC32Tables.shared.base
    var crc = state
    var rest = bytes[...]
    while rest.count >= 8 {
      let word = UInt64(littleEndian: UnsafeRawBufferPointer(rebasing: rest).loadUnaligned(as: UInt64.self))
      crc = CRC32Tables.fold(word ^ UInt64(crc), table)
      rest = rest.dropFirst(8)
    }
    for byte in rest { crc = (crc >> 8) ^ table[Int((crc ^ UInt32(byte)) & 0xFF)] }
    state = crc
  }
}

/// The eight tables of 256 words that ``CRC32`` uses, computed at first use.
struct CRC32Tables: @unchecked Sendable {
  static let shared = CRC32Tables()

  /// Table k begins at word 256 * k. It maps a byte to its effect after k more bytes.
  let base: UnsafePointer<UInt32>

  private init() {
    let words = UnsafeMutablePointer<UInt32>.allocate(capacity: 8 * 256)
    for index in 0..<256 {
      var word = UInt32(index)
      for _ in 0..<8 { word = (word >> 1) ^ (word & 1 == 0 ? 0 : 0xEDB8_8320) }
      words[index] = word
    }
    for index in 256..<8 * 256 {
      let shorter = words[index - 256]
      words[index] = (shorter >> 8) ^ words[Int(shorter & 0xFF)]
    }
    base = UnsafePointer(words)
  }

  /// Returns the state after eight bytes, given as a little-endian word whose low half is combined with the old state.
  @inline(__always)
  static func fold(_ word: UInt64, _ table: UnsafePointer<UInt32>) -> UInt32 {
    @inline(__always) func part(_ byte: UInt64) -> UInt32 {
      table[Int(truncatingIfNeeded: 256 * (7 - byte) + (word >> (8 * byte)) & 0xFF)]
    }
    return (part(0) ^ part(1)) ^ (part(2) ^ part(3)) ^ (part(4) ^ part(5)) ^ (part(6) ^ part(7))
  }
}
