import FeedSystem
import Glibc
import TestSupport

/// Reads the output of a program on a terminal.
final class TerminalReader {
  private let terminal: PseudoTerminal
  private var bytes: [UInt8] = []

  init(_ terminal: PseudoTerminal) { self.terminal = terminal }

  /// The text received so far.
  var text: String { String(decoding: bytes, as: UTF8.self) }

  /// Types on the terminal.
  func type(_ keys: String) throws {
    let bytes = Array(keys.utf8)
    guard Glibc.write(terminal.master, bytes, bytes.count) == bytes.count else { throw TestFailure("cannot type") }
  }

  /// Reads until the output contains `words`.
  /// - Parameter start: the number of characters to skip at the beginning.
  func wait(for words: String, after start: Int = 0) throws {
    let end = ContinuousClock.now + testTimeout
    while !text.dropFirst(start).contains(words) {
      guard ContinuousClock.now < end, try readMore() else {
        throw TestFailure("'\(words)' is not on the terminal; it shows:\n\(text.debugDescription)")
      }
    }
  }

  /// Waits for bytes and reads them. Returns false after a timeout.
  @discardableResult
  func readMore() throws -> Bool {
    guard try !Readiness.readable.wait(on: terminal.master, timeout: testTimeout).isEmpty else { return false }
    var chunk = [UInt8](repeating: 0, count: 16 << 10)
    let count = Glibc.read(terminal.master, &chunk, chunk.count)
    guard count > 0 else { throw TestFailure("the terminal was closed; it showed:\n\(text.debugDescription)") }
    bytes += chunk[..<count]
    return true
  }
}
