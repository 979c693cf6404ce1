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

  /// Writes the buffered output. Blocks until the reader accepts it.
  func flush() throws(Failure) {
    defer { output.removeAll(keepingCapacity: true) }
    if output.isEmpty { return }
    do throws(SystemError) {
      try write(output.bytes, StandardStreams.output)
    } catch {
      throw error.code == EPIPE ? .readerGone : .system(error)
    }
  }

  /// Writes the buffered output if it is large, so that a long result needs little memory.
  func flushIfLarge() throws(Failure) {
    if pendingBytes > 256 << 10 { try flush() }
  }

  /// The number of buffered bytes.
  var pendingBytes: Int { output.count }

  /// Appends a line to the buffered output; see ``flush()``.
  func print(_ text: String) {
    output.append(string: text)
    output.append(UInt8(ascii: "\n"))
  }

  /// Appends text without a newline.
  func printRaw(_ text: String) { output.append(string: text) }

  /// Appends bytes unchanged.
  func printRaw(_ bytes: [UInt8]) { bytes.withUnsafeBytes { output.append($0) } }

  /// Appends a JSON value as one line.
  func print(_ view: JSONView) {
    output.append(compact: view)
    output.append(UInt8(ascii: "\n"))
  }

  /// Writes a message to standard error, after the buffered output. Replaces control characters, because messages quote
  /// the input of other programs. Ignores a write error.
  func say(_ message: String) {
    try? flush()
    sayRaw("feedclient: \(LinePainter.safe(message))\n")
  }

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
