import FeedClient
import FeedJSON
import FeedQuery

/// What a command remembers of a row instead of its element: a digest, the identity, and whether the filter of `--where`
/// accepted the element.
///
/// Its text is a JSON array such as `["9ae16a3b2f90404f",17]`, with a third entry `false` if the filter did not accept.
struct RowPrint: Equatable {
  /// The digest of the element and of the row's type.
  var digest: UInt64
  /// The identity as JSON text; nil if the element has none.
  var id: [UInt8]?
  var isAccepted = true

  /// The number of bytes before the identity, and of the digits of the digest.
  private static let (prefix, digits) = (20, 16)
  private static let refused = Array(",false]".utf8)

  init(digest: UInt64, id: [UInt8]?, isAccepted: Bool = true) {
    (self.digest, self.id, self.isAccepted) = (digest, id, isAccepted)
  }

  /// Reads a text that ``text`` returned; nil if it is malformed.
  init?(_ text: [UInt8]) {
    guard text.count > Self.prefix, text.starts(with: Array("[\"".utf8)),
      let digest = UInt64(String(decoding: text[2..<2 + Self.digits], as: UTF8.self), radix: 16)
    else { return nil }
    self.digest = digest
    isAccepted = text.suffix(Self.refused.count) != Self.refused[...]
    let id = text[Self.prefix...].dropLast(isAccepted ? 1 : Self.refused.count)
    self.id = id.elementsEqual("null".utf8) ? nil : Array(id)
  }

  var text: [UInt8] {
    let text = Array("[\"\(padded(digest, to: Self.digits, radix: 16))\",".utf8)
    return text + (id ?? Array("null".utf8)) + (isAccepted ? [UInt8(ascii: "]")] : Self.refused)
  }
}

extension RowPrint {
  /// Returns the text of an identity as the daemon writes it: equal identities have equal texts, however elements write them.
  static func canonical(_ id: [UInt8]) -> [UInt8] {
    let isString = id.first == UInt8(ascii: "\"")
    if isString, !id.contains(UInt8(ascii: "\\")) { return id }
    var text = ByteBuffer()
    id.withUnsafeBytes { bytes in
      guard isString else { return JSONNumber(bytes).appendCanonicalText(to: &text) }
      var scanner = JSONScanner()
      guard let view = try? scanner.scan(bytes) else { return text.append(bytes) }
      view.withDecodedUTF8 { text.appendJSONString(utf8: $0) }
    }
    return Array(text.bytes)
  }
}

/// Makes the prints of a feed's rows.
struct RowPrinter {
  var identities = IdentityPaths.id
  /// The filter of `--where`.
  var filter: Filter?

  func print(_ element: JSONView, type: String?, section: String? = nil) -> RowPrint {
    let values = identities.paths(in: section).lazy.compactMap { $0.resolve(element) }
    let id = values.first { $0.kind == .string || $0.kind == .number }?.compactText
    return RowPrint(digest: Self.digest(element, type), id: id, isAccepted: filter?.accepts(element) ?? true)
  }

  /// FNV-1a of the compact text, a zero byte and the type.
  private static func digest(_ element: JSONView, _ type: String?) -> UInt64 {
    var digest: UInt64 = 0xCBF2_9CE4_8422_2325
    func add(_ byte: UInt8) { digest = (digest ^ UInt64(byte)) &* 0x100_0000_01B3 }
    if element.isCompact { element.text.forEach(add) } else { element.compactText.forEach(add) }
    if let type {
      add(0)
      type.utf8.forEach(add)
    }
    return digest
  }
}
