import FeedJSON
import Synchronization

/// A compiled query or filter: tables of fixed-size entries that refer to each other by index.
///
/// Immutable. The tables are raw memory owned by the program, so evaluation needs neither reference counting nor allocation.
/// Patterns cache states and have their own synchronization.
///
/// Invariant: each index in an entry is in its table (checked in debug builds).
final class Program: @unchecked Sendable {
  let tables: ProgramTables
  private let release: () -> Void

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

struct ByteRange {
  var offset: UInt32
  var count: UInt32
}

struct Literal {
  var kind: JSONKind
  /// The text of a number or the decoded string; empty for other kinds.
  var bytes: ByteRange
  /// The value of a number, if it is an integer in the range of `Int`.
  var integer: Int?
}

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

  static let accept: Int32 = -1
  static let reject: Int32 = -2
}

/// The regular expression of a `match` or `search` in a filter.
///
/// A text that is not an I-Regexp matches nothing (RFC 9535, sections 2.4.6 and 2.4.7). Can be shared between threads.
final class Pattern: Sendable {
  /// Whether the whole string must match (`match`), rather than a part of it (`search`).
  let isWhole: Bool
  /// The compiled literal; nil if it is not an I-Regexp or `isConstant` is false.
  private let constant: RegexpMatcher?
  /// Whether the pattern is a literal of the query.
  let isConstant: Bool
  /// The pattern of the last evaluation, if it is read from the value.
  private let last = Mutex<Last?>(nil)

  /// The memory of the compiled pattern in bytes, without cached states. Depends only on the syntax.
  var size: Int { 1024 + (isConstant ? constant?.size ?? 0 : Self.largestConstant) }
  /// The ranges that were put together to its character classes if it is a literal.
  var ranges: Int { constant?.ranges ?? 0 }
  /// The memory of a pattern that is read from the value, which is kept until the next evaluation.
  private static let largestConstant = 16 << 10

  private struct Last {
    var text: [UInt8]
    var regexp: RegexpMatcher?
  }

  /// Creates a pattern that is read from the value at each evaluation.
  init(isWhole: Bool) {
    self.isWhole = isWhole
    constant = nil
    isConstant = false
  }

  /// Creates a pattern from a literal at `offset` in the query.
  /// - Throws: if the literal is an I-Regexp that exceeds a limit.
  init(isWhole: Bool, constant text: [UInt8], at offset: Int, ranges: Int) throws(QueryError) {
    self.isWhole = isWhole
    isConstant = true
    do {
      constant = try RegexpMatcher(parsing: String(decoding: text, as: UTF8.self), atMost: ranges)
    } catch {
      guard case .limit(let error) = error else {
        constant = nil
        return
      }
      throw QueryError(offset: offset, message: "regular expression: \(error.message)")
    }
  }

  /// An upper bound for the work of `count` matches over values with `bytes` bytes in total, of expressions with
  /// `patternBytes` bytes in total.
  func mostWork(_ count: Double, over bytes: Double, patternBytes: Double) -> Double {
    // Every evaluation reads both texts, also that of a literal.
    let reading = count + (bytes + patternBytes) / 16
    if isConstant { return reading + count + bytes * (constant?.mostWorkOverByte ?? 0) }
    // Each match may compile another expression.
    let compiling = QueryLimits.regexpClassWork + 2 * QueryLimits.regexpInstructions
    return reading + patternBytes + count * Double(compiling / 8) + bytes
      * RegexpMatcher.mostWorkOverByte(QueryLimits.regexpInstructions)
  }

  /// Whether `value` matches; nil if `work` runs out. `pattern` is ignored if the pattern is a literal.
  /// - Parameter pace: lets a long match stop now and then. Nobody else may then use the query.
  func matches(
    _ value: UnsafeRawBufferPointer, pattern: UnsafeRawBufferPointer, work: inout Int,
    _ pace: Unmanaged<EvaluationPace>?
  ) -> Bool? {
    guard let regexp = isConstant ? constant : compiled(pattern, work: &work) else { return false }
    return regexp.matches(value, isWhole: isWhole, work: &work, pace)
  }

  /// Like `matches(_:pattern:work:)`, but charges the same work each time, whatever is cached: it depends only on the sizes of
  /// the value and of the expression.
  func matches(
    _ value: UnsafeRawBufferPointer, pattern: UnsafeRawBufferPointer, repeatableWork work: inout Int
  ) -> Bool? {
    var unlimited = Int.max
    let regexp = isConstant ? constant : compiled(pattern, work: &unlimited)
    if !isConstant { work &-= pattern.count &+ (regexp?.cost ?? 0) }
    guard let regexp else { return false }
    work &-= regexp.work(over: value.count)
    guard work >= 0 else { return nil }
    return regexp.matches(value, isWhole: isWhole, work: &unlimited)
  }

  /// The matcher of `pattern`; nil if it is not an I-Regexp. The last one is cached. Charges the work of compiling.
  private func compiled(_ pattern: UnsafeRawBufferPointer, work: inout Int) -> RegexpMatcher? {
    last.withLock { last in
      if let last, last.text.elementsEqual(pattern) { return last.regexp }
      let regexp = try? RegexpMatcher(parsing: String(decoding: pattern, as: UTF8.self))
      work &-= pattern.count &+ (regexp?.cost ?? 0)
      last = Last(text: Array(pattern), regexp: regexp)
      return regexp
    }
  }
}
