import FeedJSON

/// One JSON value of a frame, taken out of it whole so that a test can look at it at leisure.
struct Value: Equatable, CustomStringConvertible {
  /// The value as it stood in the frame.
  let text: String
  /// The elements of an array.
  let items: [Value]
  private let members: [String: Value]
  private let scalar: String?

  /// Reads a whole JSON text; nil when it is none.
  init?(_ text: String) {
    var scanner = JSONScanner()
    let bytes = Array(text.utf8)
    let value = bytes.withUnsafeBytes { bytes in (try? scanner.scan(bytes)).map { Value($0) } }
    guard let value else { return nil }
    self = value
  }

  private init(_ view: JSONView) {
    text = String(decoding: view.text, as: UTF8.self)
    items = view.elements.map { Value($0) }
    members = Dictionary(view.members.map { ($0.key.string ?? "", Value($0.value)) }) { _, last in last }
    scalar = view.string
  }

  subscript(name: String) -> Value? { members[name] }
  var string: String? { scalar }
  var int: Int? { Int(text) }
  var bool: Bool? { text == "true" ? true : text == "false" ? false : nil }
  /// `[section, row]`.
  var path: [Int] { items.compactMap(\.int) }

  var description: String { text }

  static func == (a: Value, b: Value) -> Bool { a.text == b.text }
}

extension String {
  /// The text as JSON; nil when it is none.
  var json: Value? { Value(self) }
}

extension Value {
  /// The code of an error response.
  var errorCode: Int? { self["error"]?["code"]?.int }
  /// What an error response says of the offending item.
  var errorData: Value? { self["error"]?["data"] }
}
