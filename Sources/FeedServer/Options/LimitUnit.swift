import FeedModel
import FeedSystem

/// What a limit counts, and so how its flag is written.
enum LimitUnit {
  case items
  case bytes
  case seconds

  func value(in range: ClosedRange<Int>) -> OptionValue {
    switch self {
    case .items: .integer(range)
    case .bytes: .bytes(range)
    case .seconds: .duration(.seconds(range.lowerBound)...(.seconds(range.upperBound)))
    }
  }

  func text(_ number: Int) -> String {
    switch self {
    case .items: "\(number)"
    case .bytes: ByteCount.text(number)
    case .seconds: TimeSpan.text(.seconds(number))
    }
  }

  /// The number that the flag was given, in this unit; part of a second counts as a whole one.
  func number(_ flag: String, in options: ParsedOptions) -> Int? {
    switch self {
    case .items: options.integer(flag)
    case .bytes: options.bytes(flag)
    case .seconds:
      options.duration(flag).map { time in
        Int(clamping: time.components.seconds) + (time.components.attoseconds > 0 ? 1 : 0)
      }
    }
  }
}

extension LimitDescription {
  /// The unit, which is the first word of the help.
  var unit: LimitUnit {
    switch help.prefix(while: { $0 != " " }) {
    case "bytes": .bytes
    case "seconds": .seconds
    default: .items
    }
  }
}
