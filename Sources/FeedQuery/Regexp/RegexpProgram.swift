import FeedJSON

/// A regular expression as a nondeterministic automaton (Thompson's construction) over classes of code points that it does not
/// distinguish. Immutable.
struct RegexpProgram: Sendable {
  enum Instruction: Sendable {
    /// Reads a code point of a set and continues at `next`.
    case set(Int32, next: Int32)
    /// Continues at both.
    case split(Int32, Int32)
    /// Continues if at the beginning of the text.
    case start(next: Int32)
    /// Continues if at the end of the text.
    case end(next: Int32)
    case match
  }

  private(set) var instructions: [Instruction] = [.match]
  private(set) var entry: Int32 = 0
  private(set) var sets: [CodePointSet] = []
  private(set) var classes: CodePointClasses
  private var setIndexes: [CodePointSet: Int32] = [:]
  /// The last few sets, with their indexes. Each copy of a repetition adds the same sets again, and to hash a category with its
  /// hundreds of ranges takes long; equal sets that are the same array are compared at once.
  private var recent: [(set: CodePointSet, index: Int32)] = []

  static let match: Int32 = 0

  init(_ syntax: RegexpSyntax) throws(RegexpFailure) {
    classes = CodePointClasses()
    guard syntax.size < QueryLimits.regexpInstructions else {
      let limit = QueryLimits.regexpInstructions
      let message = "the expression is too large (more than \(grouped(limit)) instructions); repeat less or shorten it"
      throw .limit(QueryError(offset: 0, message: message))
    }
    entry = add(syntax, next: Self.match)
    classes = try CodePointClasses(distinguishing: sets)
    (setIndexes, recent) = ([:], [])
  }

  /// Adds instructions that match `syntax` and continue at `next`. Returns the index of the first one.
  private mutating func add(_ syntax: RegexpSyntax, next: Int32) -> Int32 {
    switch syntax {
    case .set(let set): return append(.set(index(of: set), next: next))
    case .start: return append(.start(next: next))
    case .end: return append(.end(next: next))
    case .sequence(let parts):
      var next = next
      for part in parts.reversed() { next = add(part, next: next) }
      return next
    case .alternatives(let parts):
      var entry: Int32?
      for part in parts.reversed() {
        let first = add(part, next: next)
        entry = entry.map { append(.split(first, $0)) } ?? first
      }
      return entry ?? next
    case .repeated(let part, let min, let max):
      // A repetition of the empty expression is empty.
      if part.size == 0 { return next }
      return add(part, min: min, max: max, next: next)
    }
  }

  private mutating func add(_ part: RegexpSyntax, min: Int, max: Int?, next: Int32) -> Int32 {
    var (entry, copies) = (next, min)
    if let max {
      for _ in min..<max {
        let first = add(part, next: entry)
        entry = append(.split(first, next))
      }
    } else {
      let split = append(.split(next, next))
      let first = add(part, next: split)
      instructions[Int(split)] = .split(first, next)
      // If the part is repeated at least once, the one in the loop is the first.
      entry = min == 0 ? split : first
      copies = Swift.max(min - 1, 0)
    }
    for _ in 0..<copies { entry = add(part, next: entry) }
    return entry
  }

  private mutating func append(_ instruction: Instruction) -> Int32 {
    instructions.append(instruction)
    return Int32(instructions.count - 1)
  }

  private mutating func index(of set: CodePointSet) -> Int32 {
    if let known = recent.first(where: { $0.set == set }) { return known.index }
    let next = Int32(sets.count)
    let index = setIndexes[set] ?? next
    if index == next {
      sets.append(set)
      setIndexes[set] = index
    }
    if recent.count == 8 { recent.removeFirst() }
    recent.append((set, index))
    return index
  }
}

/// The syntax tree of a regular expression (RFC 9485, section 4).
indirect enum RegexpSyntax: Equatable, Sendable {
  /// One code point of a set.
  case set(CodePointSet)
  /// `^`: the beginning of the text.
  case start
  /// `$`: the end of the text.
  case end
  /// A sequence. An empty one is the empty expression.
  case sequence([RegexpSyntax])
  case alternatives([RegexpSyntax])
  /// At least `min` times and at most `max` times, or any number of times.
  case repeated(RegexpSyntax, min: Int, max: Int?)

  /// The number of instructions with repetitions unrolled; saturated.
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

/// The reason why a regular expression was refused.
enum RegexpFailure: Error {
  /// The text is not an I-Regexp.
  case syntax(QueryError)
  /// The expression exceeds a limit.
  case limit(QueryError)

  var error: QueryError {
    switch self {
    case .syntax(let error), .limit(let error): error
    }
  }
}
