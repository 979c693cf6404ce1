import FeedJSON

/// A query or filter in the form that runs: tables of fixed-size entries that refer to one another by index.
///
/// Immutable once made. The tables are raw memory owned by this object, so that evaluating touches no reference count and allocates
/// nothing; only the patterns, which keep what they learn, guard themselves.
final class Program: @unchecked Sendable {
  let tables: ProgramTables
  private let release: () -> Void

  /// Copies what `builder` collected into tables.
  init(_ builder: borrowing ProgramBuilder) {
    let names = Self.table(builder.bytes)
    let literals = Self.table(builder.literals)
    let selectors = Self.table(builder.selectors)
    let segments = Self.table(builder.segments)
    let queries = Self.table(builder.queries)
    let operands = Self.table(builder.operands)
    let tests = Self.table(builder.tests)
    let patterns = Self.table(builder.patterns.map { Unmanaged.passRetained($0) })
    let patternCount = builder.patterns.count
    tables = ProgramTables(
      bytes: UnsafePointer(names), literals: UnsafePointer(literals), selectors: UnsafePointer(selectors),
      segments: UnsafePointer(segments), queries: UnsafePointer(queries), operands: UnsafePointer(operands),
      tests: UnsafePointer(tests), patterns: UnsafePointer(patterns))
    release = {
      for index in 0..<patternCount { patterns[index].release() }
      patterns.deallocate()
      names.deallocate()
      literals.deallocate()
      selectors.deallocate()
      segments.deallocate()
      queries.deallocate()
      operands.deallocate()
      tests.deallocate()
    }
  }

  deinit { release() }

  private static func table<Entry>(_ entries: [Entry]) -> UnsafeMutablePointer<Entry> {
    let table = UnsafeMutablePointer<Entry>.allocate(capacity: max(entries.count, 1))
    entries.withUnsafeBufferPointer { source in
      if let base = source.baseAddress { table.initialize(from: base, count: source.count) }
    }
    return table
  }
}

/// Where the tables of a program are. Valid as long as the program.
struct ProgramTables {
  /// Names and literals, one after another.
  let bytes: UnsafePointer<UInt8>
  let literals: UnsafePointer<Literal>
  let selectors: UnsafePointer<Selector>
  let segments: UnsafePointer<Segment>
  let queries: UnsafePointer<Query>
  let operands: UnsafePointer<Operand>
  let tests: UnsafePointer<Test>
  let patterns: UnsafePointer<Unmanaged<Pattern>>

  /// The bytes of a name or a literal.
  @inline(__always)
  func slice(_ range: ByteRange) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: bytes + Int(range.offset), count: Int(range.count))
  }
}

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
