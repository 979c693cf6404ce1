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
    self.terminal = terminal
    self.errorTerminal = errorTerminal
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

  /// The number of buffered bytes.
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
