import CLinux
import CProcessor

/// A CRC-32C (Castagnoli), the checksum of the log's files. It detects any changed bit.
///
/// Where the processor can multiply without carry, long inputs take a fraction of a cycle a byte. Others take an instruction for
/// eight bytes, or tables.
public enum CRC32C {
  /// Continues the checksum of some bytes, 0 of none, with more bytes. O(n).
  public static func of(_ bytes: UnsafeRawBufferPointer, after crc: UInt32 = 0) -> UInt32 {
    guard bytes.count >= longInput, canMultiply, let start = bytes.baseAddress else {
      return clinux_crc32c(crc, bytes.baseAddress, bytes.count)
    }
    let long = bytes.count & ~15
    return clinux_crc32c(~processor_crc32c(~crc, start, long), start + long, bytes.count - long)
  }

  /// The bytes from which multiplying takes less time.
  private static let longInput = 256
  private static let canMultiply = processor_has_crc32() != 0
}
