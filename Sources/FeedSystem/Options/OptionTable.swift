/// The command line of a program or of one of its commands: what is parsed and what `--help` prints are this one table.
///
/// `-h`/`--help` and `-V`/`--version` are in every table without being listed.
public struct OptionTable: Equatable, Sendable {
  /// How it is called, for example `feedd` or `feedclient push`.
  public var program: String
  /// What may follow the name, a line each, for example `[OPTION]... FEED [ELEMENT...|-]`.
  public var usage: [String]
  /// What it does, in a paragraph.
  public var about: String
  /// Command lines with comments, printed as they are; empty for none.
  public var examples: String
  public var groups: [OptionGroup]
  /// Paragraphs after the options: examples, exit codes. Printed line by line as they are.
  public var notes: String

  public init(
    program: String, usage: [String], about: String, examples: String = "", groups: [OptionGroup], notes: String = ""
  ) {
    self.program = program
    self.usage = usage
    self.about = about
    self.examples = examples
    self.groups = groups + [OptionGroup("Information", [.help, .version])]
    self.notes = notes
  }

  /// Every option, in the order of the help.
  public var options: [OptionDescription] { groups.flatMap(\.options) }
}

/// Options that stand together under one heading of the help.
public struct OptionGroup: Equatable, Sendable {
  public var title: String
  public var options: [OptionDescription]

  public init(_ title: String, _ options: [OptionDescription]) {
    self.title = title
    self.options = options
  }
}

/// One option of a program: a long name, rarely a letter, a value or none, and the sentence of the help.
public struct OptionDescription: Equatable, Sendable {
  /// The name without the dashes.
  public var name: String
  /// The letter of the short form.
  public var letter: Character?
  public var value: OptionValue
  /// What it does, for the help; without the full stop.
  public var help: String
  /// What holds without it, for the help; nil when there is nothing to say.
  public var defaultText: String?
  /// Whether every value counts of an option that is given more than once; otherwise a second value is refused.
  public var repeats: Bool

  public init(
    _ name: String, letter: Character? = nil, value: OptionValue = .none, help: String, defaultText: String? = nil,
    repeats: Bool = false
  ) {
    self.name = name
    self.letter = letter
    self.value = value
    self.help = help
    self.defaultText = defaultText
    self.repeats = repeats
  }

  /// `-h`, `--help`
  public static let help = OptionDescription("help", letter: "h", help: "print this text and exit")
  /// `-V`, `--version`
  public static let version = OptionDescription("version", letter: "V", help: "print the version and exit")
}

/// What an option takes, if anything, and how it is written on the command line.
public enum OptionValue: Equatable, Sendable {
  /// Nothing: the option is there or not.
  case none
  /// Any text that is not empty; the word names it in the help, for example `PATH`.
  case text(String)
  /// A decimal integer in this range.
  case integer(ClosedRange<Int>)
  /// A number of bytes in this range, with an optional unit of 1024: `64K`, `16MiB`, `1G`.
  case bytes(ClosedRange<Int>)
  /// A time in this range: `250ms`, `30s`, `1.5m`, `2h`, `7d`; without a unit, seconds.
  case duration(ClosedRange<Duration>)
  /// One of these words.
  case choice([String])

  /// The word that stands for the value in the help; nil when there is none.
  public var placeholder: String? {
    switch self {
    case .none: nil
    case .text(let word): word
    case .integer: "N"
    case .bytes: "BYTES"
    case .duration: "TIME"
    case .choice(let words): words.joined(separator: "|")
    }
  }

  /// What a value must be, as the words after "expected".
  var expectation: String {
    switch self {
    case .none: return "no value"
    case .text(let word): return "a \(word) that is not empty"
    case .integer(let range):
      return "a whole number \(Self.bounds(range, "\(range.lowerBound)", "\(range.upperBound)"))"
    case .bytes(let range):
      let (low, high) = (ByteCount.text(range.lowerBound), ByteCount.text(range.upperBound))
      return "a number of bytes \(Self.bounds(range, low, high)), such as 4096, 64K or 16M"
    case .duration(let range):
      let (low, high) = (TimeSpan.text(range.lowerBound), TimeSpan.text(range.upperBound))
      return "a time from \(low) to \(high), such as 250ms, 30s or 2h"
    case .choice(let words): return "one of \(words.joined(separator: ", "))"
    }
  }

  /// Whether `text` is such a value.
  func accepts(_ text: String) -> Bool {
    switch self {
    case .none: false
    case .text: !text.isEmpty
    case .integer(let range): Int(text).map(range.contains) ?? false
    case .bytes(let range): ByteCount.parse(text).map(range.contains) ?? false
    case .duration(let range): TimeSpan.parse(text).map(range.contains) ?? false
    case .choice(let words): words.contains(text)
    }
  }

  private static func bounds(_ range: ClosedRange<Int>, _ low: String, _ high: String) -> String {
    range.upperBound == .max ? "of at least \(low)" : "from \(low) to \(high)"
  }
}

/// What a command line said. Every value in it has passed the check of its ``OptionValue``.
public struct ParsedOptions: Equatable, Sendable {
  /// The words that are neither options nor their values, in order.
  public internal(set) var operands: [String] = []
  private var values: [String: [String]] = [:]

  /// Whether the option was given, with or without a value.
  public func contains(_ name: String) -> Bool { values[name] != nil }

  /// The value given; the last one of an option that repeats; nil when the option was not given.
  public func text(_ name: String) -> String? { values[name]?.last }

  /// Every value given, in order, for options that may be repeated.
  public func texts(_ name: String) -> [String] { values[name] ?? [] }

  /// The value of an option of kind ``OptionValue/integer(_:)``.
  public func integer(_ name: String) -> Int? { text(name).flatMap { Int($0) } }

  /// The value of an option of kind ``OptionValue/bytes(_:)``.
  public func bytes(_ name: String) -> Int? { text(name).flatMap(ByteCount.parse) }

  /// The value of an option of kind ``OptionValue/duration(_:)``.
  public func duration(_ name: String) -> Duration? { text(name).flatMap(TimeSpan.parse) }

  public var wantsHelp: Bool { contains("help") }
  public var wantsVersion: Bool { contains("version") }

  mutating func record(_ name: String, _ value: String) { values[name, default: []].append(value) }
}

/// A command line that cannot be carried out: which word is wrong and what is expected instead.
public struct UsageError: Error, Equatable, Sendable, CustomStringConvertible {
  /// A sentence without the program's name and without the full stop.
  public var message: String

  public init(_ message: String) { self.message = message }

  public var description: String { message }
}
