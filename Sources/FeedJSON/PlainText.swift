/// Formats a quantity for people, in groups of three digits: `999`, `1,000`, `-1,234,567`.
///
/// Counts, sizes, revisions, rows and limits are grouped in every text for people. Names that happen to be numbers (user
/// and process IDs, connections, rows of the journal) and places in a file are not, and nothing that programs read is.
package func grouped(_ number: some BinaryInteger) -> String {
  let digits = "\(number.magnitude)".utf8
  var text = number < 0 ? "-" : ""
  for (place, digit) in digits.enumerated() {
    if place > 0, (digits.count - place) % 3 == 0 { text += "," }
    text.unicodeScalars.append(Unicode.Scalar(digit))
  }
  return text
}

/// Formats a quantity with its noun: `1 row`, `2,000 rows`.
/// - Parameter plural: the noun for other numbers than one; by default with an `s`.
package func counted(_ count: some BinaryInteger, _ noun: String, plural: String? = nil) -> String {
  "\(grouped(count)) \(count == 1 ? noun : plural ?? noun + "s")"
}

/// Formats a number with leading zeros, so that it has at least `width` digits: `007`, or `00ff` with radix 16.
package func padded(_ number: some BinaryInteger, to width: Int, radix: Int = 10, uppercase: Bool = false) -> String {
  let digits = String(number, radix: radix, uppercase: uppercase)
  return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
}

extension String {
  /// The text as a JSON string, with quotes.
  package var quotedAsJSON: String { ByteBuffer.text { $0.appendJSONString(self) } }

  /// The text in one line that is safe to print: each character that could control a terminal is replaced by U+FFFD.
  ///
  /// Messages quote names and values that other programs sent.
  package var inLine: String {
    guard unicodeScalars.contains(where: \.controlsTerminal) else { return self }
    return String(UnicodeScalarView(unicodeScalars.map(\.inLine)))
  }
}

extension Unicode.Scalar {
  /// Whether the character could control a terminal: control characters, line separators, and characters that change the
  /// direction of text.
  package var controlsTerminal: Bool {
    switch value {
    case 0..<0x20, 0x7F..<0xA0, 0x61C, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069: true
    default: false
    }
  }

  /// The character in a line of text for people: U+FFFD for one that could control a terminal.
  package var inLine: Unicode.Scalar { controlsTerminal ? "\u{FFFD}" : self }
}
