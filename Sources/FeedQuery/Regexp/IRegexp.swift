import FeedJSON

/// An I-Regexp (RFC 9485). Matching takes time linear in the text for any expression.
///
/// `.` matches every character except line feed and carriage return. `^` and `$` outside brackets match the beginning and the end
/// of the text; write `\^` and `[$]` for the characters. Categories (`\p{Lu}`) are those of the Swift runtime's Unicode version.
///
/// Values can be shared between threads, which match one at a time.
public struct IRegexp: Sendable {
  public let text: String
  private let matcher: RegexpMatcher

  /// Parses an expression.
  /// - Throws: if the text is not an I-Regexp, or exceeds `QueryLimits`, such as `a{1000}{1000}`.
  public init(parsing text: String) throws(QueryError) {
    do { matcher = try RegexpMatcher(parsing: text) } catch { throw error.error }
    self.text = text
  }

  /// Whether the expression matches all of `text`, UTF-8. O(bytes).
  public func matches(whole text: UnsafeRawBufferPointer) -> Bool {
    var work = Int.max
    return matcher.matches(text, isWhole: true, work: &work) ?? false
  }

  /// Whether the expression matches some part of `text`, UTF-8; the empty part counts. O(bytes).
  public func searches(in text: UnsafeRawBufferPointer) -> Bool {
    var work = Int.max
    return matcher.matches(text, isWhole: false, work: &work) ?? false
  }
}

/// A compiled regular expression with its cached states. Only one thread at a time uses it.
final class RegexpMatcher: Sendable {
  private let states: RegexpStates
  /// The cost of compiling, in the unit of `work`.
  let cost: Int
  private let instructionCount: Int
  /// The memory of the program in bytes.
  let size: Int

  /// The ranges that were put together to its character classes.
  let ranges: Int

  /// - Parameter mostRanges: the largest ``ranges``.
  init(parsing text: String, atMost mostRanges: Int = QueryLimits.regexpRanges) throws(RegexpFailure) {
    var parsed = 0
    let program = try RegexpProgram(try RegexpParser.parse(text, ranges: &parsed, atMost: mostRanges))
    ranges = parsed
    cost = (program.instructions.count + program.classes.starts.count + program.classes.work) >> 3
    instructionCount = program.instructions.count
    let kept = program.sets.reduce(0) { $0 + $1.ranges.count }
    size = 16 * (program.instructions.count + program.classes.starts.count) + 8 * kept
    states = RegexpStates(program)
  }

  deinit { RegexpCaches.shared.remove(states) }

  /// Returns the work charged for matching `bytes` bytes independently of the cached states. It is proportional to the size of
  /// the expression.
  func work(over bytes: Int) -> Int { bytes &* instructionCount &>> 5 }

  /// The most work that one byte can take: a state that is not cached is computed from all instructions, and reaches all.
  var mostWorkOverByte: Double { Self.mostWorkOverByte(instructionCount) }

  static func mostWorkOverByte(_ instructions: Int) -> Double { Double(2 * instructions / 8 + 1) }

  /// Whether all of `text` matches, or a part of it if `isWhole` is false. Nil if `work` runs out first.
  /// - Parameter pace: lets a long match stop now and then. Nobody else may then use the expression.
  func matches(
    _ text: UnsafeRawBufferPointer, isWhole: Bool, work: inout Int, _ pace: Unmanaged<EvaluationPace>? = nil
  ) -> Bool? { states.matches(text, isWhole: isWhole, work: &work, pace) }
}

/// The two automata of a regular expression. Their states are computed as texts are matched.
final class RegexpStates: @unchecked Sendable {
  /// Guards the rest, which changes with each match.
  private let lock = Guarded(())
  private let whole: LazyAutomaton
  private let part: LazyAutomaton
  /// The memory of the states when the caches were last told, in bytes.
  private var toldMemory = 0
  /// The place in the order of the caches, and the memory that they count. Guarded by the lock of ``RegexpCaches``.
  fileprivate var place: Int?
  fileprivate var counted = 0

  init(_ program: RegexpProgram) {
    whole = LazyAutomaton(program, isSearch: false)
    part = LazyAutomaton(program, isSearch: true)
  }

  /// See ``RegexpMatcher/matches(_:isWhole:work:_:)``.
  func matches(
    _ text: UnsafeRawBufferPointer, isWhole: Bool, work: inout Int, _ pace: Unmanaged<EvaluationPace>?
  ) -> Bool? {
    var grown: Int?
    let result = lock.withLock { _ in
      let result = (isWhole ? whole : part).run(text, work: &work, pace)
      let memory = whole.memory &+ part.memory
      if memory != toldMemory {
        toldMemory = memory
        grown = memory
      }
      return result
    }
    if let grown { RegexpCaches.shared.note(self, memory: grown) }
    return result
  }

  /// Frees the states, unless a match is under way. Returns whether it did.
  fileprivate func discard() -> Bool {
    let isDone: Bool? = lock.withLockIfAvailable { _ in
      whole.discardStates()
      part.discardStates()
      toldMemory = 0
      return true
    }
    return isDone ?? false
  }
}

/// Bounds the memory of the cached states of all regular expressions: a short definition may have many expressions, and
/// the states of each may take megabytes.
///
/// If all take more than `QueryLimits.regexpCaches`, the states that have been listed longest are discarded. Results and counted
/// steps never depend on what is cached. Invariant: `total` is the sum of what is counted for the listed states.
final class RegexpCaches: Sendable {
  static let shared = RegexpCaches()

  private struct Contents {
    /// The states by their place in the order in which they were listed.
    var listed: [Int: RegexpStates] = [:]
    /// No states have a smaller place.
    var first = 0
    var next = 0
    var total = 0
  }

  private let contents = Guarded(Contents())

  /// The memory of all cached states in bytes.
  var memory: Int { contents.withLock { $0.total } }

  /// Records the memory of states that grew, and discards others if there are too many. Amortized O(1).
  func note(_ states: RegexpStates, memory: Int) {
    contents.withLock { contents in
      if states.place == nil {
        states.place = contents.next
        contents.listed[contents.next] = states
        contents.next += 1
      }
      contents.total += memory - states.counted
      states.counted = memory
      if contents.total > QueryLimits.regexpCaches { Self.shrink(&contents, keeping: states) }
    }
  }

  /// Forgets the states of an expression that is gone.
  func remove(_ states: RegexpStates) { contents.withLock { Self.remove(states, from: &$0) } }

  /// Discards states in order, except `kept` and those of matches that are under way.
  private static func shrink(_ contents: inout Contents, keeping kept: RegexpStates) {
    var place = contents.first
    while contents.total > QueryLimits.regexpCaches, place < contents.next {
      if let states = contents.listed[place], states !== kept, states.discard() { remove(states, from: &contents) }
      place += 1
    }
    while contents.first < contents.next, contents.listed[contents.first] == nil { contents.first += 1 }
  }

  private static func remove(_ states: RegexpStates, from contents: inout Contents) {
    guard let place = states.place else { return }
    contents.listed[place] = nil
    contents.total -= states.counted
    states.place = nil
    states.counted = 0
  }
}

/// A regular expression as a nondeterministic automaton (Thompson's construction) over classes of code points that it does not
/// distinguish. Immutable.
struct RegexpProgram: Sendable {
  enum Instruction: Sendable {
    /// Reads a code point of a set and continues at `next`.
    case set(Int32, next: Int32)
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
    guard syntax.size < QueryLimits.regexpInstructions else { throw .tooLarge(at: 0) }
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
  case limit(QueryError)

  static func tooLarge(at offset: Int) -> RegexpFailure {
    let limit = grouped(QueryLimits.regexpInstructions)
    let message = "the expression is too large (more than \(limit) instructions); repeat less or shorten it"
    return .limit(QueryError(offset: offset, message: message))
  }

  static var tooManyClasses: RegexpFailure {
    let message = "the expression has too many different character classes; use fewer or smaller ones"
    return .limit(QueryError(offset: 0, message: message))
  }

  var error: QueryError {
    switch self {
    case .syntax(let error), .limit(let error): error
    }
  }
}
