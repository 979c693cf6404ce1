/// The rule for names of feeds and bins: `[A-Za-z0-9._-]{1,128}` (PROTOCOL section 3).
public enum FeedName {
  public static let maxLength = 128

  /// Whether `name` may name a feed or a bin.
  public static func isValid(_ name: String) -> Bool {
    let utf8 = name.utf8
    return (1...maxLength).contains(utf8.count) && utf8.allSatisfy(isAllowed)
  }

  /// Whether `name` may stand for a feed or for one bin of a collection, `collection/bin`.
  public static func isValidReference(_ name: String) -> Bool {
    let parts = name.split(separator: "/", omittingEmptySubsequences: false)
    return parts.count <= 2 && parts.allSatisfy { isValid(String($0)) }
  }

  private static func isAllowed(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"):
      true
    default: false
    }
  }
}
