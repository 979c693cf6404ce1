import FeedChange
import FeedWire

extension Mirror {
  /// The number of rows in each section, as `verify` answers it. O(sections).
  public var counts: [Int] { sections.map(\.rows.count) }

  /// The digest that `verify` answers for the same rows: CRC-32 of the compact JSON `[[elements of section 0],…]`, as
  /// eight hexadecimal digits. O(bytes), about two gigabytes a second.
  public var digest: String {
    var crc = CRC32()
    crc.update(UInt8(ascii: "["))
    for (index, section) in sections.enumerated() {
      if index > 0 { crc.update(UInt8(ascii: ",")) }
      crc.update(UInt8(ascii: "["))
      var isFirst = true
      for row in section.rows {
        if !isFirst { crc.update(UInt8(ascii: ",")) }
        isFirst = false
        row.element.withUnsafeBytes { crc.update($0) }
      }
      crc.update(UInt8(ascii: "]"))
    }
    crc.update(UInt8(ascii: "]"))
    return crc.hex8
  }
}
