import FeedJSON
import FeedQuery

/// The names of sections by value: `feed/value`, and the name of the feed for rows without a value.
///
/// Different values have different names, whatever other sections there are, and the name tells the value: a string that
/// would be named like another value, or has no UTF-8, is named by its JSON text (Protocol/README.md, "Sections by value").
enum SectionName {
  /// The maximum length of the JSON text of a value in bytes. A longer value names no section.
  fileprivate static let longest = 1024

  /// Whether a value names a section: a non-empty string, a number, true or false.
  static func isNamed(by value: JSONView) -> Bool {
    switch value.kind {
    case .string: value.text.count > 2 && value.text.count <= longest
    case .number: value.text.count <= longest
    case .true, .false: true
    case .null, .array, .object: false
    }
  }

  /// The name of the section for a value. Numbers of equal value have the same name.
  static func name(of value: JSONView?, in feed: String) -> String {
    guard let value, isNamed(by: value) else { return feed }
    var name = ByteBuffer()
    name.append(string: "\(feed)/")
    switch value.kind {
    case .string: value.withDecodedUTF8 { append(string: $0, to: &name) }
    case .number: JSONNumber(value.text).appendCanonicalText(to: &name)
    case .true, .false, .null, .array, .object: name.append(value.text)
    }
    return String(decoding: name.bytes, as: UTF8.self)
  }

  /// Appends the part of the name for a string.
  fileprivate static func append(string: UnsafeRawBufferPointer, to name: inout ByteBuffer) {
    if isPlain(string) { name.append(string) } else { name.appendJSONString(utf8: string) }
  }

  /// Whether a string names itself: it has UTF-8, begins with no quotation mark, and is not like a number or boolean.
  static func isPlain(_ string: UnsafeRawBufferPointer) -> Bool {
    switch string.first {
    case UInt8(ascii: "\""): return false
    case UInt8(ascii: "t"): if string.elementsEqual("true".utf8) { return false }
    case UInt8(ascii: "f"): if string.elementsEqual("false".utf8) { return false }
    default: if JSONNumber.isCanonical(string) { return false }
    }
    var last: UInt8 = 0
    for byte in string {
      if last == 0xED && byte >= 0xA0 { return false }
      last = byte
    }
    return true
  }

  /// The name of the section for what follows the name of the feed in it; the name of the feed if that is empty.
  static func name(_ value: String, in feed: String) -> String { value.isEmpty ? feed : "\(feed)/\(value)" }
}

extension ManagedRows {
  /// What follows the feed's name in the name of the section for a text; empty for a text that is empty or too long.
  public static func sectionName(ofText text: String) -> String {
    var text = text
    if text.isEmpty || text.utf8.count > SectionName.longest { return "" }
    var json = ByteBuffer()
    json.appendJSONString(text)
    if json.count > SectionName.longest { return "" }
    var name = ByteBuffer()
    text.withUTF8 { SectionName.append(string: UnsafeRawBufferPointer($0), to: &name) }
    return String(decoding: name.bytes, as: UTF8.self)
  }

  /// The same for a blob, given its base64 as a JSON string.
  public static func sectionName(ofBase64 json: UnsafeRawBufferPointer) -> String {
    json.count > SectionName.longest ? "" : String(decoding: json.dropFirst().dropLast(), as: UTF8.self)
  }
}

/// The names of the sections by value of a collection, read from the section keys of the elements in them.
final class SectionNames {
  private let feed: String
  private let path: SingularPath
  private let descending: Bool
  private var scanner = JSONScanner(maxDepth: Limits.largestDepth)
  /// The bytes of all names before the value, then those of the last value.
  private var text = ByteBuffer()
  /// The last name of a string that is named by its JSON text.
  private var quoted = ByteBuffer()
  private let headLength: Int

  init(feed: String, path: SingularPath, descending: Bool) {
    (self.feed, self.path, self.descending) = (feed, path, descending)
    text.append(string: "\(feed)/")
    headLength = text.count
  }

  /// The name of the section of an element with sort keys, the first of which is that of the section.
  func name(of element: ElementText) -> String { withName(of: element) { String(decoding: $0, as: UTF8.self) } }

  @inline(__always)
  func withName<R>(of element: ElementText, _ body: (UnsafeRawBufferPointer) -> R) -> R { body(write(element)) }

  /// Writes the name of the section of an element. Returns its bytes, valid until the next name is written.
  private func write(_ element: ElementText) -> UnsafeRawBufferPointer {
    text.truncate(to: headLength)
    switch SortOrder.value(of: SortOrder.key(0, in: element.keys), descending: descending) {
    case .false: text.append("false")
    case .true: text.append("true")
    case .number(let key): JSONNumber.appendCanonicalText(ofKey: key, isInverted: descending, to: &text)
    case .string(let bytes):
      if append(decoding: bytes), isPlain { break }
      quoted.removeAll(keepingCapacity: true)
      quoted.append(string: nameInText(of: element))
      return quoted.bytes
    case .other: return UnsafeRawBufferPointer(rebasing: text.bytes[..<(headLength - 1)])
    }
    return text.bytes
  }

  /// Whether the string whose bytes were appended is named by them. Most begin with a letter.
  private var isPlain: Bool { SectionName.isPlain(UnsafeRawBufferPointer(rebasing: text.bytes[headLength...])) }

  /// Appends the bytes of a string, each zero followed by another byte. Returns false for a string with surrogates.
  private func append(decoding bytes: UnsafeRawBufferPointer) -> Bool {
    let mask: UInt64 = descending ? .max : 0
    text.reserve(bytes.count)
    let out = UnsafeMutableRawPointer(text.pointer + text.count)
    var (place, written, last) = (0, 0, UInt8(0))
    while place < bytes.count {
      // Most names are ASCII: eight bytes at a time.
      if bytes.count &- place >= 8 {
        let word = bytes.loadUnaligned(fromByteOffset: place, as: UInt64.self) ^ mask
        if Self.isASCII(word) {
          out.storeBytes(of: word, toByteOffset: written, as: UInt64.self)
          (place, written, last) = (place &+ 8, written &+ 8, 0)
          continue
        }
      }
      let byte = bytes[place] ^ UInt8(truncatingIfNeeded: mask)
      if last == 0xED && byte >= 0xA0 { return false }
      out.storeBytes(of: byte, toByteOffset: written, as: UInt8.self)
      (place, written, last) = (place &+ (byte == 0 ? 2 : 1), written &+ 1, byte)
    }
    text.didWrite(written)
    return true
  }

  @inline(__always) private static func isASCII(_ word: UInt64) -> Bool {
    (word &- 0x0101_0101_0101_0101 | word) & 0x8080_8080_8080_8080 == 0
  }

  /// The name of the section of an element, read from its text.
  private func nameInText(of element: ElementText) -> String {
    guard let element = try? scanner.scan(element.text) else { return feed }
    return SectionName.name(of: path.resolve(element), in: feed)
  }
}

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

  /// Compares the key that the tree has for a row: negative before, 0 if equal; nil if eight bytes do not decide.
  @inline(__always)
  func comparePrefix(_ key: UInt64) -> Int32? {
    let key = key & mask
    if key != prefix { return key < prefix ? -1 : 1 }
    // No key is a prefix of another.
    return bytes.count <= 8 ? 0 : nil
  }
}
