import FeedJSON

/// The names of sections by value: `feed/value`, and the name of the feed for rows without a value.
enum SectionName {
  /// The maximum length of the JSON text of a value in bytes; a longer one names nothing.
  private static let longest = 1024

  /// Whether a value names a section of its own: a string that is not empty, a number, true or false.
  static func isNamed(by value: JSONView) -> Bool {
    switch value.kind {
    case .string: value.text.count > 2 && value.text.count <= longest
    case .number: value.text.count <= longest
    case .true, .false: true
    case .null, .array, .object: false
    }
  }

  /// The name of the section for a value; the same for numbers of equal value.
  static func name(of value: JSONView?, in feed: String) -> String {
    guard let value, isNamed(by: value) else { return feed }
    switch value.kind {
    case .string: return name(value.string ?? "", in: feed)
    case .number: return name(JSONNumber(value.text).canonicalText, in: feed)
    case .true, .false, .null, .array, .object: return name(String(decoding: value.text, as: UTF8.self), in: feed)
    }
  }

  /// The name of the section for a text; that of the feed for an empty one.
  static func name(_ value: String, in feed: String) -> String {
    value.isEmpty ? feed : "\(feed)/\(value)"
  }
}
