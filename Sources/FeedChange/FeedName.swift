/// The rule for names of feeds and bins: `[A-Za-z0-9._-]{1,128}` (Protocol/README.md, "Names").
public enum FeedName {
  /// The name of the feed that lists all feeds. No feed with this name can be defined.
  public static let feeds = "$feeds"
  /// The maximum number of bytes of a name.
  public static let maxLength = 128
  /// The maximum number of bytes of a reference, `collection/bin`.
  public static let maxReferenceLength = 2 * maxLength + 1

  /// Whether `name` is a valid name of a feed or a bin.
  public static func isValid(_ name: String) -> Bool {
    let utf8 = name.utf8
    return (1...maxLength).contains(utf8.count) && utf8.allSatisfy(isAllowed)
  }

  /// Whether `name` is a valid reference: the name of a feed, `collection/bin`, or `$feeds`.
  public static func isValidReference(_ name: String) -> Bool {
    if name == feeds { return true }
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
