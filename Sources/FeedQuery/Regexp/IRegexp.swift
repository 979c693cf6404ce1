import Synchronization

/// An I-Regexp (RFC 9485), matched in time linear in the text whatever the expression says.
///
/// `.` is every character but line feed and carriage return. `^` and `$` outside brackets are the beginning and the end of the text;
/// `\^` and `[$]` are the characters. Categories (`\p{Lu}`) are those of the Unicode version of the Swift runtime.
///
/// Values may be shared between threads; matching on one of them is one thread at a time.
public struct IRegexp: Sendable {
  /// The text it was made of.
  public let text: String
  private let matcher: RegexpMatcher

  /// Refuses what is no I-Regexp, and what exceeds a limit of `QueryLimits`, such as `a{1000}{1000}`.
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

/// A compiled regular expression with what it has learnt; several threads may use it, one after another.
final class RegexpMatcher: @unchecked Sendable {
  /// Guards the two automata, which grow while they match.
  private let lock = Mutex(())
  private let whole: LazyAutomaton
  private let part: LazyAutomaton
  /// What compiling cost, in the unit of `work`.
  let cost: Int
  /// Instructions of the program.
  private let size: Int

  init(parsing text: String) throws(RegexpFailure) {
    let program = try RegexpProgram(try RegexpParser.parse(text))
    cost = (program.instructions.count + program.classes.starts.count + program.classes.work) >> 3
    size = program.instructions.count
    whole = LazyAutomaton(program, isSearch: false)
    part = LazyAutomaton(program, isSearch: true)
  }

  /// What matching so many bytes is charged where it must not depend on what was learnt: about the time that it takes with
  /// an expression of a few instructions, and in proportion for larger ones.
  func work(over bytes: Int) -> Int { bytes &* size &>> 5 }

  /// Whether all of `text` matches, or for a search some part of it. Nil when `work` runs out before that is known.
  func matches(_ text: UnsafeRawBufferPointer, isWhole: Bool, work: inout Int) -> Bool? {
    lock.withLock { _ in (isWhole ? whole : part).run(text, work: &work) }
  }
}
