/// A deterministic automaton that is made while it runs: a state is a set of instructions of the program, and a transition is
/// computed the first time that it is taken.
///
/// A step over a known transition costs one look into a table; making one costs at most the size of the program. Both are bounded,
/// so time is linear in the text whatever the expression. The states are forgotten when they fill `QueryLimits.regexpCache`.
final class LazyAutomaton {
  let program: RegexpProgram
  /// Any part of the text may match: the beginning of the program joins every state.
  let isSearch: Bool
  let classCount: Int
  /// For each state, where each class leads: a state's number, with `final` added where the run can end.
  var transitions: UnsafeMutablePointer<UInt32>
  var states: [State] = []
  /// The instructions of all states, one after another.
  var pool: [Int32] = []
  var numbers: [[Int32]: UInt32] = [:]
  let stateLimit: Int
  var closure: RegexpClosure

  struct State {
    /// Where the instructions of the state stand in the pool.
    var instructions: Range<Int>
    /// It has matched, whatever follows.
    var accepts: Bool
    /// It has matched if the text ends here.
    var acceptsAtEnd: Bool
    /// Nothing can match any more.
    var isDead: Bool { instructions.isEmpty && !acceptsAtEnd }
  }

  /// Not computed yet.
  static let unknown = UInt32.max
  /// Set in a transition to a state whose answer is known already.
  static let final: UInt32 = 1 << 30
  /// The number of the first state, at the beginning of the text.
  static let first: UInt32 = 0

  init(_ program: RegexpProgram, isSearch: Bool) {
    self.program = program
    self.isSearch = isSearch
    classCount = program.classes.examples.count
    closure = RegexpClosure(size: program.instructions.count)
    stateLimit = max(QueryLimits.regexpCache / (classCount * MemoryLayout<UInt32>.size), 16)
    transitions = UnsafeMutablePointer<UInt32>.allocate(capacity: classCount)
    capacity = 1
  }

  /// States that there is room for in `transitions`.
  var capacity: Int

  deinit { transitions.deallocate() }

  /// Runs over UTF-8; nil when `work` runs out.
  func run(_ text: UnsafeRawBufferPointer, work: inout Int) -> Bool? {
    if states.isEmpty { begin() }
    var state = Self.first
    if isSearch, states[0].accepts { return true }
    guard let base = text.baseAddress else { return states[0].acceptsAtEnd }
    return program.classes.withTables { classes in
      var position = base.assumingMemoryBound(to: UInt8.self)
      let end = position + text.count
      let width = classCount
      var table = transitions
      while position < end {
        let number = classes.next(&position, end)
        var next = table[Int(state) &* width &+ number]
        if next >= Self.final {
          if next == Self.unknown {
            next = step(from: state, over: number, work: &work)
            table = transitions
            guard work >= 0 else { return nil }
          }
          if next & Self.final != 0 { return states[Int(next & ~Self.final)].accepts }
        }
        state = next
      }
      return states[Int(state)].acceptsAtEnd
    }
  }
}
