import FeedClient
import FeedJSON
import FeedSystem
import Glibc

/// Where a command's words go: results to standard output, everything else to standard error.
final class Console {
  /// What standard output is.
  let terminal: Terminal
  let errorTerminal: Terminal
  /// Whether results are JSON, one value a line, instead of text for people.
  let isJSON: Bool
  /// Whether `--json` was given.
  let wantsJSON: Bool
  private var output = ByteBuffer()
  private let write: (UnsafeRawBufferPointer, Int32) throws(SystemError) -> Void

  /// - Parameter write: writes bytes to a descriptor; tests collect them.
  init(
    terminal: Terminal, errorTerminal: Terminal, isJSON: Bool,
    write: @escaping (UnsafeRawBufferPointer, Int32) throws(SystemError) -> Void = StandardStreams.writeAll
  ) {
    self.terminal = terminal
    self.errorTerminal = errorTerminal
    wantsJSON = isJSON
    self.isJSON = isJSON || !terminal.isTerminal
    self.write = write
  }

  /// Writes what was printed so far, waiting for the reader.
  func flush() throws(Failure) {
    defer { output.removeAll(keepingCapacity: true) }
    if output.isEmpty { return }
    do throws(SystemError) {
      try write(output.bytes, StandardStreams.output)
    } catch {
      throw error.code == EPIPE ? .readerGone : .system(error)
    }
  }

  /// Writes what was printed if there is much of it, so that a long result needs little memory.
  func flushIfLarge() throws(Failure) {
    if pendingBytes > 256 << 10 { try flush() }
  }

  /// How many bytes wait for ``flush()``.
  var pendingBytes: Int { output.count }

  /// Adds a line to standard output; see ``flush()``.
  func print(_ text: String) {
    output.append(string: text)
    output.append(UInt8(ascii: "\n"))
  }

  /// Adds text without a newline.
  func printRaw(_ text: String) { output.append(string: text) }

  /// Adds bytes as they are.
  func printRaw(_ bytes: [UInt8]) { bytes.withUnsafeBytes { output.append($0) } }

  /// Adds a JSON value as one line.
  func print(_ view: JSONView) {
    output.append(compact: view)
    output.append(UInt8(ascii: "\n"))
  }

  /// Writes a message to standard error, after what was printed. Control characters are replaced, since messages quote
  /// what other programs sent. A failure to write it is ignored.
  func say(_ message: String) {
    try? flush()
    sayRaw("feedclient: \(LinePainter.safe(message))\n")
  }

  /// Writes to standard error as it is.
  func sayRaw(_ text: String) {
    var text = text
    text.withUTF8 { bytes in try? write(UnsafeRawBufferPointer(bytes), StandardStreams.error) }
  }

  /// The colours of standard output.
  var palette: Palette { Palette(isOn: terminal.allowsColor && !isJSON) }

  /// A line as wide as the terminal; as wide as it needs when standard output is not one.
  func line() -> LinePainter {
    LinePainter(width: terminal.isTerminal ? terminal.columns : LinePainter.unlimited, palette: palette)
  }
}

/// Numbers for people.
enum Grouped {
  /// The digits in groups of three: 1,234,567.
  static func text(_ number: Int) -> String {
    let digits = String(number.magnitude)
    var text = number < 0 ? "-" : ""
    for (place, digit) in digits.enumerated() {
      if place > 0, (digits.count - place) % 3 == 0 { text += "," }
      text.append(digit)
    }
    return text
  }

  /// The number with its noun: `1 row`, `2,000 rows`.
  static func text(_ number: Int, _ noun: String) -> String { "\(text(number)) \(noun)\(number == 1 ? "" : "s")" }
}
