import FeedClient
import FeedJSON
import FeedSystem
import Glibc

/// Where a command's words go: results to standard output, everything said about them to standard error.
final class Console {
  /// What standard output is, as the commands need to know.
  let terminal: Terminal
  let errorTerminal: Terminal
  /// Whether results are one JSON object a line, for programs, instead of text for people.
  let isJSON: Bool
  /// Whether that was asked for in so many words.
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

  /// How much is waiting for ``flush()``.
  var pendingBytes: Int { output.count }

  /// Adds to standard output; see ``flush()``.
  func print(_ text: String) {
    output.append(string: text)
    output.append(UInt8(ascii: "\n"))
  }

  /// Adds text without a new line.
  func printRaw(_ text: String) { output.append(string: text) }

  /// Adds a JSON value as one line.
  func print(_ view: JSONView) {
    output.append(compact: view)
    output.append(UInt8(ascii: "\n"))
  }

  /// Says something on standard error, after what was printed. That nobody reads it is no error.
  func say(_ sentence: String) {
    try? flush()
    sayRaw("feedclient: \(sentence)\n")
  }

  /// Writes to standard error as it is.
  func sayRaw(_ text: String) {
    var text = text
    text.withUTF8 { bytes in try? write(UnsafeRawBufferPointer(bytes), StandardStreams.error) }
  }

  /// The colours of standard output.
  var palette: Palette { Palette(isOn: terminal.allowsColor && !isJSON) }
}
