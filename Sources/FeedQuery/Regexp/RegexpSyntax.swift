/// A regular expression as it was written (RFC 9485, section 4).
indirect enum RegexpSyntax: Equatable, Sendable {
  /// One code point of a set.
  case set(CodePointSet)
  /// `^`: the beginning of the text.
  case start
  /// `$`: the end of the text.
  case end
  /// One after another; none is the empty expression.
  case sequence([RegexpSyntax])
  case alternatives([RegexpSyntax])
  /// At least `min` times and at most `max` times, or any number of times.
  case repeated(RegexpSyntax, min: Int, max: Int?)

  /// Number of instructions when repetitions are written out; saturates.
  var size: Int {
    switch self {
    case .set, .start, .end: 1
    case .sequence(let parts): parts.reduce(0) { Self.sum($0, $1.size) }
    case .alternatives(let parts): parts.reduce(parts.count - 1) { Self.sum($0, $1.size) }
    case .repeated(let part, let min, nil): Self.sum(Self.product(part.size, Swift.max(min, 1)), 1)
    case .repeated(let part, let min, let max?):
      Self.sum(Self.product(part.size, min), Self.product(Self.sum(part.size, 1), max - min))
    }
  }

  private static func sum(_ a: Int, _ b: Int) -> Int {
    let (sum, overflow) = a.addingReportingOverflow(b)
    return overflow ? .max : sum
  }

  private static func product(_ a: Int, _ b: Int) -> Int {
    let (product, overflow) = a.multipliedReportingOverflow(by: b)
    return overflow ? .max : product
  }
}

/// Why a regular expression was refused.
enum RegexpFailure: Error {
  /// The text is no I-Regexp.
  case syntax(QueryError)
  /// It is one, but exceeds a limit of ours.
  case limit(QueryError)

  var error: QueryError {
    switch self {
    case .syntax(let error), .limit(let error): error
    }
  }
}
