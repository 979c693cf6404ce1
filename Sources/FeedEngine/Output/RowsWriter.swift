import FeedJSON
import FeedModel

/// Writes rows of one section, or of one part of a snapshot, as the members `elements` and, if rows may have types, `types`.
struct RowsWriter: ~Copyable {
  let withTypes: Bool
  /// The types of the rows between `begin` and `end`, separated by commas.
  private var types = ByteBuffer()
  /// The number of rows since `begin`.
  private(set) var count = 0

  init(withTypes: Bool) {
    self.withTypes = withTypes
  }

  /// The memory in bytes.
  var memory: Int { types.capacity }

  /// The bytes that `end` adds to the texts of the rows.
  var typesSize: Int { types.count }

  mutating func begin(_ out: inout ByteBuffer) {
    count = 0
    out.append(",\"elements\":[")
  }

  /// Adds a row.
  ///
  /// - Parameter type: the type as rows store it.
  mutating func append(_ text: UnsafeRawBufferPointer, type: UnsafeRawBufferPointer, to out: inout ByteBuffer) {
    if count > 0 { out.append(UInt8(ascii: ",")) }
    out.append(text)
    if withTypes {
      if count > 0 { types.append(UInt8(ascii: ",")) }
      types.append(type: type)
    }
    count &+= 1
  }

  mutating func end(_ out: inout ByteBuffer) {
    out.append(UInt8(ascii: "]"))
    guard withTypes else { return }
    out.append(",\"types\":[")
    out.append(types.bytes)
    out.append(UInt8(ascii: "]"))
    types.removeAll(keepingCapacity: true)
  }
}

extension ByteBuffer {
  /// Appends a type as rows store it, or null if it is empty.
  mutating func append(type: UnsafeRawBufferPointer) {
    if type.isEmpty { append("null") } else { append(type) }
  }

  /// Appends `[{"name":…,"count":…},…]`.
  mutating func appendSectionList(_ sections: [any FeedSection]) {
    append(UInt8(ascii: "["))
    for (place, section) in sections.enumerated() {
      var name = section.name
      name.withUTF8 {
        appendSection(place, name: UnsafeRawBufferPointer($0), isByValue: section.isByValue, count: section.count)
      }
      append(UInt8(ascii: "}"))
    }
    append(UInt8(ascii: "]"))
  }

  /// Appends `[{"name":…,"count":…},…]` for the sections of a feed.
  mutating func appendSectionList(of feed: Feed) {
    append(UInt8(ascii: "["))
    var place = 0
    feed.forEachSection { name, isByValue, count in
      appendSection(place, name: name, isByValue: isByValue, count: count)
      append(UInt8(ascii: "}"))
      place += 1
    }
    append(UInt8(ascii: "]"))
  }

  /// Appends the beginning of the object of a section, `{"name":…,"count":…`, with the `key` of one by value, after a comma
  /// unless it is the first.
  mutating func appendSection(_ place: Int, name: UnsafeRawBufferPointer, isByValue: Bool, count: Int) {
    append(place > 0 ? ",{\"name\":" : "{\"name\":")
    appendJSONString(utf8: name)
    if isByValue { appendKey(ofSection: name) }
    append(",\"count\":", integer: count)
  }
}
