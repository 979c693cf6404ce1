import Synchronization

/// An I-Regexp (RFC 9485). Matching takes time linear in the text for any expression.
///
/// `.` matches every character except line feed and carriage return. `^` and `$` outside brackets match the beginning and the end
/// of the text; write `\^` and `[$]` for the characters. Categories (`\p{Lu}`) are those of the Swift runtime's Unicode version.
///
/// Values can be shared between threads, which match one at a time.
public struct IRegexp: Sendable {
  /// The source text.
  public let text: String
  private let matcher: RegexpMatcher

  /// Parses an expression.
  ///
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

  /// Whether the expression matches all of `text`.
  public func matches(whole text: String) -> Bool {
    var text = text
    return text.withUTF8 { matches(whole: UnsafeRawBufferPointer($0)) }
  }

  /// Whether the expression matches some part of `text`.
  public func searches(in text: String) -> Bool {
    var text = text
    return text.withUTF8 { searches(in: UnsafeRawBufferPointer($0)) }
  }
}

/// A compiled regular expression with its cached states. Only one thread at a time uses it.
final class RegexpMatcher: Sendable {
  private let states: RegexpStates
  /// The cost of compiling, in the unit of `work`.
  let cost: Int
  /// The number of instructions of the program.
  private let instructionCount: Int
  /// The memory of the program in bytes.
  let size: Int

  init(parsing text: String) throws(RegexpFailure) {
    let program = try RegexpProgram(try RegexpParser.parse(text))
    cost = (program.instructions.count + program.classes.starts.count + program.classes.work) >> 3
    instructionCount = program.instructions.count
    let ranges = program.sets.reduce(0) { $0 + $1.ranges.count }
    size = 16 * (program.instructions.count + program.classes.starts.count) + 8 * ranges
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
  ///
  /// - Parameter pace: lets a long match stop now and then. Nobody else may then use the expression.
  func matches(
    _ text: UnsafeRawBufferPointer, isWhole: Bool, work: inout Int, _ pace: Unmanaged<EvaluationPace>? = nil
  ) -> Bool? {
    states.matches(text, isWhole: isWhole, work: &work, pace)
  }
}
