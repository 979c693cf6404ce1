import FeedJSON

/// Parses a command line from left to right by the conventions of GNU `getopt_long`.
///
/// It accepts `--name VALUE`, `--name=VALUE`, `-n VALUE`, `-nVALUE` and clusters such as `-hn VALUE`. Unique prefixes of
/// long names are accepted. `--` ends the options. A single `-` and negative numbers are operands. Only `--name=VALUE`
/// accepts the whole name of another option as a value.
struct OptionParser {
  private let options: [OptionDescription]
  private let arguments: [String]
  private let stopsAtOperand: Bool
  /// The index of the next word to read.
  private var next = 0
  private var parsed = ParsedOptions()

  init(_ options: [OptionDescription], _ arguments: [String], stopsAtOperand: Bool) {
    (self.options, self.arguments, self.stopsAtOperand) = (options, arguments, stopsAtOperand)
  }

  mutating func parse() throws(UsageError) -> ParsedOptions {
    while next < arguments.count {
      let word = arguments[next]
      if Self.isOperand(word) {
        if stopsAtOperand { break }
        parsed.operands.append(word)
        next += 1
        continue
      }
      next += 1
      if word == "--" { break }
      if word.hasPrefix("--") { try readLong(word.dropFirst(2)) } else { try readLetters(word.dropFirst()) }
    }
    parsed.operands += arguments[next...]
    return parsed
  }

  /// Whether a word is neither an option nor `--`.
  private static func isOperand(_ word: String) -> Bool {
    guard word.utf8.first == UInt8(ascii: "-"), let second = word.utf8.dropFirst().first else { return true }
    return (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(second) && Double(word) != nil
  }

  /// Parses `name` or `name=value`.
  private mutating func readLong(_ word: Substring) throws(UsageError) {
    let equals = word.firstIndex(of: "=")
    let option = try option(named: String(word[..<(equals ?? word.endIndex)]))
    let value = equals.map { String(word[word.index(after: $0)...]) }
    if option.value == .none {
      guard value == nil else { throw UsageError("--\(option.name) takes no value") }
      try record(option, "")
    } else {
      if let value { return try record(option, value) }
      try record(option, try consumeValue(of: option))
    }
  }

  /// Parses one letter or a cluster of letters. The text after a letter that takes a value is its value.
  private mutating func readLetters(_ letters: Substring) throws(UsageError) {
    var rest = letters
    while let letter = rest.popFirst() {
      guard let option = options.first(where: { $0.letter == letter }) else {
        throw UsageError("unknown option -\(letter)")
      }
      if option.value == .none {
        try record(option, "")
      } else {
        return try record(option, try rest.isEmpty ? consumeValue(of: option) : String(rest))
      }
    }
  }

  private mutating func consumeValue(of option: OptionDescription) throws(UsageError) -> String {
    guard next < arguments.count else {
      throw UsageError("--\(option.name): missing value, expected \(option.value.expectation)")
    }
    let value = arguments[next]
    if options.contains(where: { "--\($0.name)" == value }) {
      throw UsageError(
        "--\(option.name): missing value, expected \(option.value.expectation); write --\(option.name)=\(value) if that is it"
      )
    }
    next += 1
    return value
  }

  private mutating func record(_ option: OptionDescription, _ value: String) throws(UsageError) {
    guard option.value == .none || option.value.accepts(value) else {
      throw UsageError("--\(option.name) '\(value)': expected \(option.value.expectation)")
    }
    guard option.value == .none || option.repeats || !parsed.contains(option.name) else {
      throw UsageError("--\(option.name) is given twice; give it once")
    }
    parsed.record(option.name, value)
  }

  /// Finds the option with this name, or the only one whose name has this prefix.
  private func option(named name: String) throws(UsageError) -> OptionDescription {
    if let exact = options.first(where: { $0.name == name }) { return exact }
    let candidates = name.isEmpty ? [] : options.filter { $0.name.hasPrefix(name) }
    if candidates.count == 1 { return candidates[0] }
    if candidates.count > 1 { throw UsageError("ambiguous option --\(name): it can be \(Self.list(candidates))") }
    throw UsageError("unknown option --\(name)" + Spelling.suggestion(for: name, in: options.map(\.name), prefix: "--"))
  }

  private static func list(_ options: [OptionDescription]) -> String {
    options.map { "--\($0.name)" }.joined(separator: ", ")
  }
}

extension OptionTable {
  /// Parses the arguments after the name of the program; see ``OptionParser`` for the syntax. An option with a value can be
  /// given only once, unless it repeats.
  /// - Parameter stopsAtOperand: whether the first operand ends the options. Otherwise options and operands can be mixed.
  public func parse(_ arguments: [String], stopsAtOperand: Bool = false) throws(UsageError) -> ParsedOptions {
    var parser = OptionParser(options, arguments, stopsAtOperand: stopsAtOperand)
    return try parser.parse()
  }
}
