import FeedClient
import FeedSystem
import Glibc

/// Standard input, for commands that read all of it before they start.
enum StandardInput {
  /// Reads available input, waiting for at least one byte. Returns 0 at the end.
  /// - Parameter deadline: in nanoseconds of ``MonotonicClock``; nil for no limit.
  static func read(into buffer: UnsafeMutableRawBufferPointer, until deadline: UInt64?) throws(Failure) -> Int {
    do throws(SystemError) {
      return try StandardStreams.read(into: buffer, until: deadline)
    } catch {
      throw error.code == ETIMEDOUT ? .client(.timedOut) : .system(error)
    }
  }

  /// Reads all input as text.
  /// - Throws: a usage error for bytes that are not UTF-8.
  static func readAll(until deadline: UInt64?) throws(Failure) -> String {
    var queue = ByteQueue(capacity: 64 << 10)
    while true {
      let count = try read(into: queue.room(), until: deadline)
      if count == 0 { break }
      queue.didFill(count)
    }
    guard let text = String(validating: queue.bytes, as: UTF8.self) else {
      throw .usage("standard input is not UTF-8")
    }
    return text
  }
}

/// Elements of a command line: arguments, or standard input.
enum ElementArguments {
  /// The maximum bytes of an element on standard input: the greatest `maxFrame` that a daemon can be configured with.
  private static let inputLimit = 1 << 30

  /// Returns the words. Throws unless each is a JSON text.
  static func parse(_ words: [String], of command: String) throws(Failure) -> [String] {
    for (place, word) in words.enumerated() {
      if let flaw = Operands.flaw(word) {
        throw .usage("\(command): element \(place + 1) is not JSON: \(flaw)\(Self.hint(word))")
      }
    }
    return words
  }

  /// A hint on quoting for a word that is not JSON. A bare word is usually a string without its quotes.
  private static func hint(_ word: String) -> String {
    let isBare = word.unicodeScalars.allSatisfy { $0.properties.isAlphabetic }
    return isBare ? "; quote a string twice: '\"\(word)\"'" : "; quote it for the shell: '{\"id\":1}'"
  }

  /// Returns all elements on standard input; see ``ElementReader``.
  static func readAll(for command: String, until deadline: UInt64?) throws(Failure) -> [String] {
    var reader = ElementReader(limit: inputLimit)
    var elements: [String] = []
    var flaw: Failure?
    while flaw == nil {
      let count = try StandardInput.read(into: reader.room(), until: deadline)
      count == 0 ? reader.finish() : reader.didFill(count)
      while let item = reader.next() {
        switch item {
        case .tooLong(let line): flaw = flaw ?? .usage("\(command): the element in line \(line) is too long")
        case .malformed(let line, let column, let reason):
          flaw = flaw ?? .usage("\(command): line \(line), column \(column): not JSON: \(reason)")
        case .element(let view, _): elements.append(String(decoding: view.text, as: UTF8.self))
        }
      }
      if count == 0 { break }
    }
    if let flaw { throw flaw }
    return elements
  }
}

extension Invocation {
  /// Tells a person at a terminal that the command waits for input.
  func announceInput(_ what: String) {
    guard Terminal(descriptor: StandardStreams.input, environment: environment).isTerminal else { return }
    console.say("reading \(what) from the terminal; end with Ctrl-D")
  }

  /// Returns the elements from operand `first` on. With `-` or without any, reads them from standard input.
  func elements(from first: Int) throws(Failure) -> [String] {
    let words = Array(operands.dropFirst(first))
    if words.isEmpty || words == ["-"] {
      announceInput("JSON elements")
      do throws(Failure) {
        return try ElementArguments.readAll(for: command.name, until: end)
      } catch {
        if case .client(let error) = error { throw failure(error) }
        throw error
      }
    }
    return try ElementArguments.parse(words, of: command.name)
  }
}
