import FeedClient
import FeedJSON
import FeedSystem

/// Standard input, for commands that take all of it before they do anything.
enum StandardInput {
  /// Reads what is there, waiting for at least one byte; 0 at the end.
  /// - Parameter deadline: when to give up, in nanoseconds of ``MonotonicClock``; nil waits for ever.
  static func read(into buffer: UnsafeMutableRawBufferPointer, until deadline: UInt64?) throws(Failure) -> Int {
    do throws(SystemError) {
      if try isReady(until: deadline) { return try StandardStreams.read(into: buffer) }
    } catch {
      throw .system(error)
    }
    throw .client(.timedOut)
  }

  /// Waits for something to read, or the end; false when the time is up, whether or not there is something.
  private static func isReady(until deadline: UInt64?) throws(SystemError) -> Bool {
    guard let deadline else { return true }
    while MonotonicClock.now < deadline {
      var list = WaitList()
      list.add(StandardStreams.input, .readable)
      if try list.wait(until: deadline) { return true }
    }
    return false
  }

  /// The text up to the end. Bytes that are not UTF-8 are refused.
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

/// Elements that a command line names: as arguments, or on standard input.
enum ElementArguments {
  /// The most that a command takes from standard input at once: the largest frame that a daemon can be configured to
  /// take.
  private static let inputLimit = 1 << 30

  /// The elements of these words, each of which must be a JSON text.
  static func parse(_ words: [String], of command: String) throws(Failure) -> [String] {
    for (place, word) in words.enumerated() {
      if let flaw = Operands.flaw(word) {
        throw .usage("\(command): element \(place + 1) is not JSON: \(flaw)\(Self.hint(word))")
      }
    }
    return words
  }

  /// What a shell may have done to a word: a bare word is most often a string that lost its quotes.
  private static func hint(_ word: String) -> String {
    let isBare = word.unicodeScalars.allSatisfy { $0.properties.isAlphabetic }
    return isBare ? "; a string needs quotes of its own: '\"\(word)\"'" : "; put it in single quotes: '{\"id\":1}'"
  }

  /// All elements on standard input, one a line; blank lines count for nothing.
  static func readAll(for command: String, until deadline: UInt64?) throws(Failure) -> [String] {
    var lines = LineSplitter(limit: inputLimit)
    var elements: [String] = []
    var line = 0
    var flaw: Failure?
    while flaw == nil {
      let count = try StandardInput.read(into: lines.room(), until: deadline)
      count == 0 ? lines.finish() : lines.didFill(count)
      while let next = lines.next() {
        line += 1
        switch next {
        case .blank: continue
        case .tooLong: flaw = .usage("\(command): line \(line) is longer than any frame")
        case .text(let bytes):
          if let problem = Operands.flaw(bytes) {
            flaw = .usage("\(command): line \(line) is not JSON: \(problem)")
          }
          elements.append(String(decoding: bytes, as: UTF8.self))
        }
      }
      if count == 0 { break }
    }
    if let flaw { throw flaw }
    return elements
  }
}

extension Invocation {
  /// The elements from operand `first` on: arguments, or with `-` or none at all, lines of standard input.
  func elements(from first: Int) throws(Failure) -> [String] {
    let words = Array(operands.dropFirst(first))
    if words.isEmpty || words == ["-"] { return try ElementArguments.readAll(for: command.name, until: end) }
    return try ElementArguments.parse(words, of: command.name)
  }
}
