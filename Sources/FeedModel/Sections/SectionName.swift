import FeedJSON

/// The names of sections by value: `feed/value`, and the name of the feed for rows without a value.
enum SectionName {
  /// The maximum length of the JSON text of a value in bytes. A longer value names no section.
  private static let longest = 1024

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
    switch value.kind {
    case .string: return name(value.string ?? "", in: feed)
    case .number: return name(JSONNumber(value.text).canonicalText, in: feed)
    case .true, .false, .null, .array, .object: return name(String(decoding: value.text, as: UTF8.self), in: feed)
    }
  }

  /// The name of the section for a text; the name of the feed if the text is empty.
  static func name(_ value: String, in feed: String) -> String {
    value.isEmpty ? feed : "\(feed)/\(value)"
  }
}
