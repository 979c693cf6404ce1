import FeedClient
import FeedJSON
import FeedSystem

/// Elements that a command line names: as arguments, or on standard input.
enum Elements {
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
    if words.isEmpty || words == ["-"] { return try Elements.readAll(for: command.name, until: end) }
    return try Elements.parse(words, of: command.name)
  }
}
