import CLinux
import Glibc

/// Numbers and text that no one can guess and that never come twice.
public enum Random {
  /// 128 random bits of the kernel as 32 hexadecimal digits.
  public static func hex128() throws(SystemError) -> String { digits(try number()) + digits(try number()) }

  /// 64 random bits of the kernel.
  public static func number() throws(SystemError) -> UInt64 {
    var bits: UInt64 = 0
    let count = retryingInterrupts { getrandom(&bits, MemoryLayout<UInt64>.size, 0) }
    guard count == MemoryLayout<UInt64>.size else { throw .last("get random bytes") }
    return bits
  }

  private static func digits(_ value: UInt64) -> String {
    let text = String(value, radix: 16)
    return String(repeating: "0", count: 16 - text.count) + text
  }
}
