import FeedJSON

/// The options of a program or of one of its commands. The parser and `--help` use the same table.
///
/// Every table has `-h`/`--help` and `-V`/`--version`; the initializer adds them.
public struct OptionTable: Equatable, Sendable {
  /// The name of the command, such as `feedd` or `feedclient push`.
  public var program: String
  /// The lines of the synopsis, each without the name, such as `[OPTION]... FEED [ELEMENT...|-]`.
  public var usage: [String]
  /// A paragraph that describes the command.
  public var about: String
  /// Example command lines with comments, printed unchanged; empty for none.
  public var examples: String
  public var groups: [OptionGroup]
  /// Text after the options, such as exit codes, printed unchanged.
  public var notes: String

  public init(
    program: String, usage: [String], about: String, examples: String = "", groups: [OptionGroup], notes: String = ""
  ) {
    (self.program, self.usage, self.about, self.examples) = (program, usage, about, examples)
    self.groups = groups + [OptionGroup("Information", [.help, .version])]
    self.notes = notes
    assert(Set(options.map(\.name)).count == options.count, "two options have the same name")
  }

  public var options: [OptionDescription] { groups.flatMap(\.options) }
}

/// Options under one heading of the help.
public struct OptionGroup: Equatable, Sendable {
  public var title: String
  public var options: [OptionDescription]

  public init(_ title: String, _ options: [OptionDescription]) { (self.title, self.options) = (title, options) }
}

/// One option: a long name, possibly a letter, an optional value, and its description in the help.
public struct OptionDescription: Equatable, Sendable {
  /// The name without the dashes.
  public var name: String
  /// The letter of the short form.
  public var letter: Character?
  public var value: OptionValue
  /// The description in the help: a noun phrase or an imperative without a full stop.
  public var help: String
  /// The default in the help; nil for none.
  public var defaultText: String?
  /// Whether the option can be given more than once. Otherwise a second value is an error.
  public var repeats: Bool

  public init(
    _ name: String, letter: Character? = nil, value: OptionValue = .none, help: String, defaultText: String? = nil,
    repeats: Bool = false
  ) {
    (self.name, self.letter, self.value, self.help, self.defaultText) = (name, letter, value, help, defaultText)
    self.repeats = repeats
  }

  public static let help = OptionDescription("help", letter: "h", help: "print this text and exit")
  public static let version = OptionDescription("version", letter: "V", help: "print the version and exit")
}

public enum OptionValue: Equatable, Sendable {
  case none
  /// Non-empty text. The word is its placeholder in the help, such as `PATH`.
  case text(String)
  /// A decimal integer in this range.
  case integer(ClosedRange<Int>)
  /// A number of bytes in this range, with an optional unit that is a power of 1024: `64K`, `16MiB`, `1G`.
  case bytes(ClosedRange<Int>)
  /// A duration in this range: `250ms`, `30s`, `1.5m`, `2h`, `7d`. The default unit is seconds.
  case duration(ClosedRange<Duration>)
  case choice([String])

  /// The placeholder of the value in the help; nil if there is no value.
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

  /// The words after "expected" in an error about the value.
  var expectation: String {
    switch self {
    case .none: return "no value"
    case .text(let word): return "a non-empty \(word)"
    case .integer(let range):
      return "an integer \(Self.bounds(range, grouped(range.lowerBound), grouped(range.upperBound)))"
    case .bytes(let range):
      let (low, high) = (ByteCount.text(range.lowerBound), ByteCount.text(range.upperBound))
      return "a number of bytes \(Self.bounds(range, low, high)), such as 4096, 64K or 16M"
    case .duration(let range):
      let (low, high) = (TimeSpan.text(range.lowerBound), TimeSpan.text(range.upperBound))
      return "a time from \(low) to \(high), such as 250ms, 30s or 2h"
    case .choice(let words): return "one of \(words.joined(separator: ", "))"
    }
  }

  func accepts(_ text: String) -> Bool {
    switch self {
    case .none: false
    case .text: !text.isEmpty
    case .integer(let range): Count.parse(text).map(range.contains) ?? false
    case .bytes(let range): ByteCount.parse(text).map(range.contains) ?? false
    case .duration(let range): TimeSpan.parse(text).map(range.contains) ?? false
    case .choice(let words): words.contains(text)
    }
  }

  private static func bounds(_ range: ClosedRange<Int>, _ low: String, _ high: String) -> String {
    range.upperBound == .max ? "of at least \(low)" : "from \(low) to \(high)"
  }
}

/// A parsed command line. Every value has the type of its option.
public struct ParsedOptions: Equatable, Sendable {
  public internal(set) var operands: [String] = []
  private var values: [String: [String]] = [:]

  public func contains(_ name: String) -> Bool { values[name] != nil }

  /// The value of an option; the last one if it was repeated; nil if the option was not given.
  public func text(_ name: String) -> String? { values[name]?.last }

  public func texts(_ name: String) -> [String] { values[name] ?? [] }

  /// The value of an option of kind ``OptionValue/integer(_:)``.
  public func integer(_ name: String) -> Int? { text(name).flatMap(Count.parse) }

  /// The value of an option of kind ``OptionValue/bytes(_:)``.
  public func bytes(_ name: String) -> Int? { text(name).flatMap(ByteCount.parse) }

  /// The value of an option of kind ``OptionValue/duration(_:)``.
  public func duration(_ name: String) -> Duration? { text(name).flatMap(TimeSpan.parse) }

  public var wantsHelp: Bool { contains("help") }
  public var wantsVersion: Bool { contains("version") }
  mutating func record(_ name: String, _ value: String) { values[name, default: []].append(value) }
}

/// An error of the command line: the offending argument and what was expected instead.
public struct UsageError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The message, without the name of the program and without a full stop.
  public var message: String

  public init(_ message: String) { self.message = message }
  public var description: String { message }

  /// The exit status of a program with a wrong command line.
  public static let exitStatus: Int32 = 2
}

extension OptionTable {
  /// The column at which the descriptions of the options begin.
  private static let indent = 28

  /// Returns the text that `--help` prints. It ends with a line feed.
  /// - Parameter width: the columns to wrap at, clamped to 50...100.
  public func helpText(width: Int) -> String {
    let width = min(max(width, 50), 100)
    var text = ""
    for (index, line) in usage.enumerated() {
      text += (index == 0 ? "Usage: " : "       ") + program + (line.isEmpty ? "" : " \(line)") + "\n"
    }
    if !examples.isEmpty { text += "\nExamples:\n" + examples.split(separator: "\n").map { "  \($0)\n" }.joined() }
    text += "\n" + Self.wrap(about, width: width).joined(separator: "\n") + "\n"
    for group in groups where !group.options.isEmpty {
      text += "\n\(group.title):\n"
      for option in group.options { text += Self.entry(option, width: width) }
    }
    if !notes.isEmpty { text += "\n\(notes)\n" }
    return text
  }

  private static func entry(_ option: OptionDescription, width: Int) -> String {
    var head = option.letter.map { "  -\($0), --" } ?? "      --"
    head += option.name
    if let placeholder = option.value.placeholder { head += " \(placeholder)" }
    let sentence =
      option.help + (option.repeats ? "; may be repeated" : "") + (option.defaultText.map { " (default: \($0))" } ?? "")
    let margin = String(repeating: " ", count: indent)
    let lines = wrap(sentence, width: width - indent)
    if head.count + 2 > indent { return head + "\n" + lines.map { margin + $0 + "\n" }.joined() }
    let first = head + String(repeating: " ", count: indent - head.count) + (lines.first ?? "") + "\n"
    return first + lines.dropFirst().map { margin + $0 + "\n" }.joined()
  }

  /// Breaks a text at white space into lines of at most `width` characters. A longer word has a line of its own.
  static func wrap(_ text: String, width: Int) -> [String] {
    var lines: [String] = []
    for word in text.split(whereSeparator: { $0 == " " || $0 == "\n" }) {
      if let last = lines.last, last.count + 1 + word.count <= width {
        lines[lines.count - 1] = "\(last) \(word)"
      } else {
        lines.append(String(word))
      }
    }
    return lines
  }
}

public enum Count {
  /// Parses an integer, also one in groups of three digits as the help shows it: `20000000`, `20,000,000`.
  /// - Returns: nil for other text and for numbers that do not fit.
  public static func parse(_ text: String) -> Int? {
    if !text.contains(",") { return Int(text) }
    return Int(text.filter { $0 != "," }).flatMap { grouped($0) == text ? $0 : nil }
  }
}

/// The notation of numbers of bytes. The units are powers of 1024.
public enum ByteCount {
  private static let units: [(letter: Character, shift: Int)] = [("K", 10), ("M", 20), ("G", 30), ("T", 40)]

  /// Parses a number, also a grouped one, and an optional unit: `K`, `M`, `G` or `T`, in either case, optionally followed by `iB` or `B`.
  /// - Returns: nil for other text and for numbers that do not fit.
  public static func parse(_ text: String) -> Int? {
    let digits = text.prefix { $0.isASCII && ($0.isNumber || $0 == ",") }
    guard let number = Count.parse(String(digits)) else { return nil }
    var suffix = text[digits.endIndex...].uppercased()
    if suffix == "B" { suffix = "" }
    guard let letter = suffix.first else { return number }
    guard let unit = units.first(where: { $0.letter == letter }), ["", "B", "IB"].contains(suffix.dropFirst()) else {
      return nil
    }
    let (product, overflow) = number.multipliedReportingOverflow(by: 1 << unit.shift)
    return overflow ? nil : product
  }

  /// Returns the shortest exact text, such as `16MiB` or `1,500`.
  public static func text(_ count: Int) -> String {
    guard count > 0, let unit = units.last(where: { count & ((1 << $0.shift) - 1) == 0 }) else { return grouped(count) }
    return "\(count >> unit.shift)\(unit.letter)iB"
  }
}

/// The notation of durations.
public enum TimeSpan {
  private static let units: [(name: String, milliseconds: Int)] = [
    ("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000),
  ]

  /// Parses a number with at most three decimals and a unit: `ms`, `s`, `m`, `h` or `d`. The default unit is seconds. The
  /// result is rounded down to milliseconds.
  /// - Returns: nil for other text and for durations that do not fit.
  public static func parse(_ text: String) -> Duration? {
    let number = text.prefix { $0.isASCII && ($0.isNumber || $0 == "." || $0 == ",") }
    let suffix = text[number.endIndex...]
    guard let unit = units.first(where: { $0.name == (suffix.isEmpty ? "s" : suffix) }) else { return nil }
    let parts = number.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
    guard let whole = parts.first.flatMap({ Count.parse(String($0)) }) else { return nil }
    var thousandths = 0
    if parts.count == 2 {
      guard (1...3).contains(parts[1].count), let digits = Int(parts[1]) else { return nil }
      thousandths = digits * [100, 10, 1][parts[1].count - 1]
    }
    let (scaled, overflow) = whole.multipliedReportingOverflow(by: unit.milliseconds)
    guard !overflow, scaled < 1 << 52 else { return nil }
    return .milliseconds(scaled + thousandths * unit.milliseconds / 1000)
  }

  /// Returns the text of a duration in its largest exact unit, such as `30s`, `250ms` or `2h`. Fractions of a millisecond
  /// are omitted.
  public static func text(_ time: Duration) -> String {
    let milliseconds = Int(clamping: time.clampedNanoseconds / 1_000_000)
    guard milliseconds > 0 else { return "0s" }
    let unit = units.last { milliseconds % $0.milliseconds == 0 } ?? units[0]
    return "\(grouped(milliseconds / unit.milliseconds))\(unit.name)"
  }
}
