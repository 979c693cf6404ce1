/// How the rows of several content types are interleaved in one list.
///
/// Types are indexes, from 0, into the list of counts that a `SlotsLayout` is made with.
///
/// - The header is gone through once, then the pattern again and again, a pass each. A pass takes its types in turn. A type that
///   has content left gives its next row, unless an earlier type of the same pass was found empty and this one is not a
///   live repeatable. For a type that has none left the default type gives its next row if it has one; else the type stops
///   being live if it was, and otherwise the pass is marked as having found an empty type; if then no repeatable is
///   live, everything ends there.
/// - Repeatables are live from the start; types that the pattern does not have do not count, and with a default type none do.
/// - When the list did not end in the header, the fixed rows come last: for each position in ascending order the next row of its
///   type is inserted there, if there is one and the list reaches that far by then. Types that the pattern has are not
///   inserted.
/// - With an empty pattern there is no list.
public struct SlotsRule: Equatable, Sendable {
  /// The types of the first pass.
  public var header: [Int]
  /// The types of every later pass.
  public var pattern: [Int]
  /// The types that go on when others are exhausted.
  public var repeatables: Set<Int>
  /// The type that fills in for exhausted ones.
  public var defaultType: Int?
  /// For positions in the finished list, from 0, the types whose rows stand there. Negative positions are ignored.
  public var fixed: [Int: Int]

  /// The rule of those parts.
  public init(
    pattern: [Int], header: [Int] = [], repeatables: Set<Int> = [], defaultType: Int? = nil, fixed: [Int: Int] = [:]
  ) {
    self.pattern = pattern
    self.header = header
    self.repeatables = repeatables
    self.defaultType = defaultType
    self.fixed = fixed
  }
}
