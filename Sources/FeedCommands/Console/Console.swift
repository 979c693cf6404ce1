import FeedClient
import FeedJSON
import FeedSystem
import Glibc

/// The output of a command: results go to standard output, everything else to standard error.
final class Console {
  /// The properties of standard output.
  let terminal: Terminal
  let errorTerminal: Terminal
  /// Whether results are JSON, one value on each line, instead of text for people.
  let isJSON: Bool
  /// Whether `--json` was given.
  let wantsJSON: Bool
  /// Whether only errors are printed.
  let isQuiet: Bool
  private var output = ByteBuffer()
  /// The first error of standard output. Nothing is written after it.
  private var failure: Failure?
  /// Writes bytes to a descriptor.
  typealias Writer = (UnsafeRawBufferPointer, Int32) throws(SystemError) -> Void
  private var write: Writer
  /// The number of bytes that were given to ``write``.
  private var flushedBytes = 0

  /// - Parameter write: writes bytes to a descriptor; tests collect them.
  init(
    terminal: Terminal, errorTerminal: Terminal, isJSON: Bool, isQuiet: Bool = false,
    write: @escaping Writer = StandardStreams.writeAll
  ) {
    (self.terminal, self.errorTerminal) = (terminal, errorTerminal)
    wantsJSON = isJSON
    self.isQuiet = isQuiet
    self.isJSON = isJSON || !terminal.isTerminal
    self.write = write
  }

  /// Writes the buffered output. Blocks until the reader accepts it.
  /// - Throws: the first error of any write.
  func flush() throws(Failure) {
    defer { output.removeAll(keepingCapacity: true) }
    if let failure { throw failure }
    if output.isEmpty { return }
    if terminal.isTerminal { output = TerminalFilter.filtered(output.bytes) }
    flushedBytes += output.count
    do throws(SystemError) {
      try write(output.bytes, StandardStreams.output)
    } catch {
      let failure: Failure = error.code == EPIPE ? .readerGone : .system(error)
      self.failure = failure
      throw failure
    }
  }

  /// Writes the buffered output if it is large, so that a long result needs little memory.
  func flushIfLarge() throws(Failure) {
    if pendingBytes > 256 << 10 { try flush() }
  }

  var pendingBytes: Int { output.count }

  /// The number of bytes of output so far, with the buffered ones.
  var offset: Int { flushedBytes + output.count }

  /// Writes standard output with another function from now on.
  func writeOutput(_ writer: @escaping (UnsafeRawBufferPointer) throws(SystemError) -> Void) {
    let before = write
    write = { bytes, descriptor throws(SystemError) in
      if descriptor == StandardStreams.output { try writer(bytes) } else { try before(bytes, descriptor) }
    }
  }

  /// Appends a line to the buffered output; see ``flush()``.
  func print(_ text: String) {
    if isQuiet { return }
    output.append(string: text)
    output.append(UInt8(ascii: "\n"))
  }

  /// Appends text without a newline.
  func printRaw(_ text: String) { if !isQuiet { output.append(string: text) } }

  /// Appends bytes unchanged.
  func printRaw(_ bytes: [UInt8]) {
    if isQuiet { return }
    bytes.withUnsafeBytes { output.append($0) }
  }

  /// Appends a JSON value as one line.
  func print(_ view: JSONView) {
    if isQuiet { return }
    output.append(compact: view)
    output.append(UInt8(ascii: "\n"))
  }

  /// Writes a message to standard error, after the buffered output. Replaces control characters, because messages quote
  /// the input of other programs. Ignores a write error.
  func say(_ message: String) {
    try? flush()
    sayRaw("feedclient: \(message.inLine)\n")
  }

  /// Writes a message that is not an error to standard error, unless only errors are printed.
  func note(_ message: String) { if !isQuiet { say(message) } }

  /// Writes text to standard error unchanged.
  func sayRaw(_ text: String) {
    var text = text
    text.withUTF8 { bytes in try? write(UnsafeRawBufferPointer(bytes), StandardStreams.error) }
  }

  /// The colours of standard output.
  var palette: Palette { Palette(isOn: terminal.allowsColor && !isJSON) }

  /// Returns an empty line as wide as the terminal; without a limit if standard output is not a terminal.
  func line() -> LinePainter {
    LinePainter(width: terminal.isTerminal ? terminal.columns : LinePainter.unlimited, palette: palette)
  }
}

/// Escapes characters of JSON strings that could control a terminal: U+007F to U+009F, and characters that change the
/// direction of text or end a line. The other control characters are always escaped in JSON.
enum TerminalFilter {
  /// Replaces each such character by `\u` and four digits.
  static func filtered(_ bytes: UnsafeRawBufferPointer) -> ByteBuffer {
    var filtered = ByteBuffer()
    var copied = 0
    var index = 0
    while index < bytes.count {
      guard let (value, length) = unsafe(bytes[index...]) else {
        index += 1
        continue
      }
      filtered.append(UnsafeRawBufferPointer(rebasing: bytes[copied..<index]))
      filtered.append(string: "\\u" + padded(value, to: 4, radix: 16))
      index += length
      copied = index
    }
    filtered.append(UnsafeRawBufferPointer(rebasing: bytes[copied...]))
    return filtered
  }

  /// The unsafe character at the beginning of UTF-8 text, and its length in bytes; nil if there is none.
  private static func unsafe(_ bytes: Slice<UnsafeRawBufferPointer>) -> (value: UInt32, length: Int)? {
    let first = bytes[bytes.startIndex]
    let length = first == 0x7F ? 1 : first == 0xC2 || first == 0xD8 ? 2 : first == 0xE2 ? 3 : 0
    guard length > 0, bytes.count >= length else { return nil }
    var value = UInt32(first) & (length == 1 ? 0x7F : length == 2 ? 0x1F : 0x0F)
    for byte in bytes.prefix(length).dropFirst() {
      guard byte & 0xC0 == 0x80 else { return nil }
      value = value << 6 | UInt32(byte & 0x3F)
    }
    guard let scalar = Unicode.Scalar(value), scalar.controlsTerminal else { return nil }
    return (value, length)
  }
}

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
