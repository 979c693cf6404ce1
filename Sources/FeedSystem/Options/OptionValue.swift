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
