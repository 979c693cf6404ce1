import FeedSystem
import Glibc
import TestSupport

/// What a program writes to a terminal, read as it comes.
final class TerminalReader {
  private let terminal: PseudoTerminal
  private var bytes: [UInt8] = []

  init(_ terminal: PseudoTerminal) { self.terminal = terminal }

  /// All that came so far.
  var text: String { String(decoding: bytes, as: UTF8.self) }

  /// Sends what a person types.
  func type(_ keys: String) throws {
    let bytes = Array(keys.utf8)
    guard Glibc.write(terminal.master, bytes, bytes.count) == bytes.count else { throw TestFailure("cannot type") }
  }

  /// Reads until `words` have come.
  /// - Parameter start: how many characters to leave out at the beginning.
  func wait(for words: String, after start: Int = 0) throws {
    let end = ContinuousClock.now + testTimeout
    while !text.dropFirst(start).contains(words) {
      guard ContinuousClock.now < end, try readMore() else {
        throw TestFailure("no '\(words)' on the terminal; it shows:\n\(text.debugDescription)")
      }
    }
  }

  /// Waits for bytes and reads them. Returns false when none came in time.
  @discardableResult
  func readMore() throws -> Bool {
    guard try !Readiness.readable.wait(on: terminal.master, timeout: testTimeout).isEmpty else { return false }
    var chunk = [UInt8](repeating: 0, count: 16 << 10)
    let count = Glibc.read(terminal.master, &chunk, chunk.count)
    guard count > 0 else { throw TestFailure("the terminal is gone; it showed:\n\(text.debugDescription)") }
    bytes += chunk[..<count]
    return true
  }
}
