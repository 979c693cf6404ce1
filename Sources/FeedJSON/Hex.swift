/// Hexadecimal digits of `\u` escapes.
enum Hex {
  /// 0–15, or 16 and more for a byte that is no hexadecimal digit.
  @inline(__always)
  static func value(_ byte: UInt8) -> UInt8 {
    let decimal = byte &- UInt8(ascii: "0")
    if decimal < 10 { return decimal }
    let letter = (byte | 0x20) &- UInt8(ascii: "a")
    return letter < 6 ? letter &+ 10 : 0xFF
  }

  /// The code unit that four digits spell; the caller has checked them.
  @inline(__always)
  static func unit(_ p: UnsafePointer<UInt8>) -> UInt32 {
    UInt32(value(p[0])) &<< 12 | UInt32(value(p[1])) &<< 8 | UInt32(value(p[2])) &<< 4 | UInt32(value(p[3]))
  }

  /// The digit for 0–15, lower case.
  @inline(__always)
  static func digit(_ value: UInt8) -> UInt8 {
    value < 10 ? UInt8(ascii: "0") &+ value : UInt8(ascii: "a") &+ (value &- 10)
  }
}
