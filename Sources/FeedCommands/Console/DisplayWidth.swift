/// The width of text on a terminal, in columns.
///
/// A character is a grapheme cluster: a letter with its marks, a flag, a family of emoji. It is never split.
enum DisplayWidth {
  /// The width of a text whose scalars are all printable.
  static func columns(of text: some StringProtocol) -> Int {
    if isASCII(text) { return text.utf8.count }
    return text.reduce(0) { $0 + columns(of: $1) }
  }

  /// Returns the longest beginning of a text that fits in a number of columns, and its width.
  static func prefix(of text: String, columns limit: Int) -> (text: Substring, columns: Int) {
    if isASCII(text) {
      let count = min(text.utf8.count, max(limit, 0))
      return (text[..<text.utf8.index(text.startIndex, offsetBy: count)], count)
    }
    var used = 0
    for index in text.indices {
      let needed = columns(of: text[index])
      if used + needed > limit { return (text[..<index], used) }
      used += needed
    }
    return (text[...], used)
  }

  private static func isASCII(_ text: some StringProtocol) -> Bool {
    // A line break of two bytes is one character, but none is printable.
    text.utf8.allSatisfy { (0x20..<0x7F).contains($0) }
  }

  /// The width of a character: 2 for emoji, flags and East Asian wide characters, otherwise the sum of its scalars, at most 2.
  static func columns(of character: Character) -> Int {
    let scalars = character.unicodeScalars
    guard let first = scalars.first else { return 0 }
    if scalars.count == 1 { return columns(of: first) }
    if isEmoji(scalars) { return 2 }
    return min(scalars.reduce(0) { $0 + columns(of: $1, after: first) }, 2)
  }

  /// Whether a character of several scalars is shown as an emoji: by a variation selector, a joiner or a skin tone.
  private static func isEmoji(_ scalars: String.UnicodeScalarView) -> Bool {
    guard let first = scalars.first, first.properties.isEmoji else { return false }
    return scalars.dropFirst().contains { scalar in
      // Digits are emoji only with the selector.
      scalar.value == emojiSelector || !first.isASCII && (scalar.value == joiner || scalar.properties.isEmojiModifier)
    }
  }

  private static let emojiSelector: UInt32 = 0xFE0F
  private static let joiner: UInt32 = 0x200D

  /// The width of a scalar inside a character: a spacing mark extends the letter before it.
  private static func columns(of scalar: Unicode.Scalar, after first: Unicode.Scalar) -> Int {
    scalar.properties.generalCategory == .spacingMark && scalar != first ? 1 : columns(of: scalar)
  }

  /// The width of a scalar: 0 for marks and format characters, 2 for emoji and East Asian wide characters, 1 for the rest.
  static func columns(of scalar: Unicode.Scalar) -> Int {
    let value = scalar.value
    if value < 0x300 { return 1 }
    switch scalar.properties.generalCategory {
    case .nonspacingMark, .enclosingMark, .format: return isVisibleFormat(value) ? 1 : 0
    default: break
    }
    // Vowels and final consonants of Hangul combine with the initial consonant before them.
    if 0x1160...0x11FF ~= value || 0xD7B0...0xD7FF ~= value { return 0 }
    return scalar.properties.isEmojiPresentation || isWide(value) ? 2 : 1
  }

  /// Format characters that are shown: signs before Arabic and Syriac numbers.
  private static func isVisibleFormat(_ value: UInt32) -> Bool {
    0x600...0x605 ~= value || value == 0x6DD || value == 0x70F || value == 0x8E2 || 0x890...0x891 ~= value
  }

  /// The wide and full-width characters (EastAsianWidth.txt) that are not emoji.
  private static func isWide(_ value: UInt32) -> Bool {
    switch value {
    case 0x1100...0x115F, 0x2329...0x232A, 0x2630...0x2637, 0x268A...0x268F, 0x2E80...0x303E, 0x3041...0x3247,
      0x3250...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE10...0xFE19, 0xFE30...0xFE6F,
      0xFF01...0xFF60, 0xFFE0...0xFFE6, 0x16FE0...0x18DFF, 0x1AFF0...0x1B2FF, 0x1D300...0x1D376, 0x1F200...0x1F265,
      0x20000...0x3FFFD:
      true
    default: false
    }
  }
}
