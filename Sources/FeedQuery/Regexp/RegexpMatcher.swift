import Synchronization

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
