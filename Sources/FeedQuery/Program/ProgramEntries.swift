import FeedJSON

/// A piece of the program's bytes.
struct ByteRange {
  var offset: UInt32
  var count: UInt32
}

/// A literal of a comparison.
struct Literal {
  var kind: JSONKind
  /// The text of a number, the decoded value of a string.
  var bytes: ByteRange
  /// The value of a number when it is an integer in the range of `Int`.
  var integer: Int?
}

/// A selector of a segment.
enum Selector {
  case name(ByteRange)
  case wildcard
  case index(Int)
  case slice(SliceBounds)
  /// The filter's first test.
  case filter(Int32)
}

/// A segment: selectors that stand one after another in their table.
struct Segment {
  var firstSelector: Int32
  var selectorCount: Int32
  var isDescendant: Bool
  /// One selector, a name or an index, and not of a descendant segment.
  var isSingular: Bool
}

/// A query: segments that stand one after another in their table.
struct Query {
  var isAbsolute: Bool
  var isSingular: Bool
  var firstSegment: Int32
  var segmentCount: Int32
  /// The selectors of a singular query stand one after another too; this is the first.
  var firstSelector: Int32
}

/// What yields one value or nothing.
enum Operand {
  case literal(Int32)
  /// A singular query.
  case query(Int32)
  /// `length` of an operand.
  case length(Int32)
  case count(Int32)
  case value(Int32)
}

/// One test of a filter and where to go from there: another test, or one of the two ends.
struct Test {
  enum Check {
    /// A singular query with a literal: nearly every comparison there is.
    case compareNode(ComparisonOperator, query: Int32, literal: Int32)
    case compare(ComparisonOperator, Int32, Int32)
    case exists(query: Int32)
    case pattern(Int32, value: Int32, pattern: Int32)
  }

  var check: Check
  var onTrue: Int32
  var onFalse: Int32

  /// The filter accepts.
  static let accept: Int32 = -1
  /// The filter does not accept.
  static let reject: Int32 = -2
}
