import CLinux
import Glibc

/// Text that no one can guess and that never comes twice.
public enum RandomText {
  /// 128 random bits of the kernel as 32 hexadecimal digits.
  public static func hex128() throws(SystemError) -> String {
    var bytes = (UInt64(0), UInt64(0))
    let count = withUnsafeMutableBytes(of: &bytes) { space in
      retryingInterrupts { getrandom(space.baseAddress, space.count, 0) }
    }
    guard count == 16 else { throw .last("get random bytes") }
    return digits(bytes.0) + digits(bytes.1)
  }

  private static func digits(_ value: UInt64) -> String {
    let text = String(value, radix: 16)
    return String(repeating: "0", count: 16 - text.count) + text
  }
}
