import FeedJSON

/// A compiled query or filter: tables of fixed-size entries that refer to each other by index.
///
/// Immutable. The tables are raw memory owned by the program, so evaluation needs neither reference counting nor allocation.
/// Patterns cache states and have their own synchronization.
///
/// Invariant: each index in an entry is in its table (checked in debug builds).
final class Program: @unchecked Sendable {
  let tables: ProgramTables
  private let release: () -> Void

  /// Copies the tables of `builder`.
  init(_ builder: borrowing ProgramBuilder) {
    builder.checkInvariants()
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

/// The addresses of the tables of a program. Valid while the program exists.
struct ProgramTables {
  /// The bytes of all names and literals.
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

/// A range in the bytes of the program.
struct ByteRange {
  var offset: UInt32
  var count: UInt32
}

/// A literal of a comparison.
struct Literal {
  var kind: JSONKind
  /// The text of a number or the decoded string; empty for other kinds.
  var bytes: ByteRange
  /// The value of a number, if it is an integer in the range of `Int`.
  var integer: Int?
}

/// A selector of a segment.
enum Selector {
  case name(ByteRange)
  case wildcard
  case index(Int)
  case slice(SliceBounds)
  /// The index of the first test of the filter.
  case filter(Int32)
}

/// A segment: a range of the selectors.
struct Segment {
  var firstSelector: Int32
  var selectorCount: Int32
  var isDescendant: Bool
  /// Whether it is a child segment with one selector, which is a name or an index.
  var isSingular: Bool
}

/// A query: a range of the segments.
struct Query {
  var isAbsolute: Bool
  var isSingular: Bool
  var firstSegment: Int32
  var segmentCount: Int32
  /// The index of the first selector. The selectors of a singular query are a range too.
  var firstSelector: Int32
}

/// An expression that yields one value or nothing. The payload is an index.
enum Operand {
  case literal(Int32)
  /// A singular query.
  case query(Int32)
  /// `length` of an operand.
  case length(Int32)
  case count(Int32)
  case value(Int32)
}

/// A test of a filter, with the index of the next test for each result, or `accept` or `reject`.
struct Test {
  enum Check {
    /// Compares a singular query with a literal, the most frequent comparison.
    case compareNode(ComparisonOperator, query: Int32, literal: Int32)
    case compare(ComparisonOperator, Int32, Int32)
    case exists(query: Int32)
    case pattern(Int32, value: Int32, pattern: Int32)
  }

  var check: Check
  var onTrue: Int32
  var onFalse: Int32

  /// The filter accepts the node.
  static let accept: Int32 = -1
  /// The filter rejects the node.
  static let reject: Int32 = -2
}
