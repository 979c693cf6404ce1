/// The key of a section by value, to compare with the rows of a tree.
///
/// A tree has the first eight bytes of the sort key of each row, which begins with the section key. They decide most
/// comparisons, so that the element of the row is not read.
struct SectionKey {
  let bytes: UnsafeRawBufferPointer
  /// The first eight bytes, padded with zeros.
  let prefix: UInt64
  /// The bits of the prefix that the key has.
  private let mask: UInt64

  init(_ bytes: UnsafeRawBufferPointer) {
    self.bytes = bytes
    prefix = SortOrder.prefix(of: bytes)
    mask = bytes.count >= 8 ? .max : ~(.max >> UInt64(8 &* bytes.count))
  }

  /// The greatest key that the tree can have for a row of the section.
  var greatest: UInt64 { prefix | ~mask }

  static func < (a: SectionKey, b: SectionKey) -> Bool {
    a.prefix == b.prefix ? SortOrder.compare(a.bytes, b.bytes) < 0 : a.prefix < b.prefix
  }

  /// Compares the key of a row with this one, by the key that the tree has: negative if it is before, 0 if it is equal;
  /// nil if the first eight bytes do not decide.
  @inline(__always)
  func comparePrefix(_ key: UInt64) -> Int32? {
    let key = key & mask
    if key != prefix { return key < prefix ? -1 : 1 }
    // No key is a prefix of another.
    return bytes.count <= 8 ? 0 : nil
  }
}
