/// Which run of the system this is.
public enum BootIdentity {
  /// A random text that changes with each start of the system; empty where the system does not tell.
  public static var current: String {
    guard let bytes = try? SmallFile.read("/proc/sys/kernel/random/boot_id", limit: 256) else { return "" }
    return String(decoding: bytes.prefix { $0 > UInt8(ascii: " ") }, as: UTF8.self)
  }
}
