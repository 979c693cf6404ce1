/// Looking at SQL without understanding it.
enum SQLText {
  /// The first word in capitals, behind white space and comments. O(what stands before it).
  static func firstWord(of text: String) -> String {
    var rest = text.utf8[...]
    while let byte = rest.first {
      if byte == UInt8(ascii: " ") || (9...13).contains(byte) {
        rest = rest.dropFirst()
      } else if rest.starts(with: "--".utf8) {
        rest = rest.drop { $0 != UInt8(ascii: "\n") }
      } else if rest.starts(with: "/*".utf8) {
        rest = afterComment(rest.dropFirst(2))
      } else {
        break
      }
    }
    let word = rest.prefix { byte in (65...90).contains(byte & 0xDF) }
    return String(decoding: word, as: UTF8.self).uppercased()
  }

  private static func afterComment(_ text: Substring.UTF8View) -> Substring.UTF8View {
    var rest = text
    while let star = rest.firstIndex(of: UInt8(ascii: "*")) {
      rest = rest[rest.index(after: star)...]
      if rest.first == UInt8(ascii: "/") { return rest.dropFirst() }
    }
    return rest[rest.endIndex...]
  }
}
