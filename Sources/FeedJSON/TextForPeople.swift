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

extension Unicode.Scalar {
  /// The scalar in a line of text for people: a replacement character for control characters and line separators.
  package var inLine: Unicode.Scalar {
    value < 0x20 || (0x7F...0x9F).contains(value) || (0x2028...0x2029).contains(value) ? "\u{FFFD}" : self
  }
}
