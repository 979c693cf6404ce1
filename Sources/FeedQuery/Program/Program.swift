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
