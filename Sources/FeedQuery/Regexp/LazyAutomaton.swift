/// A deterministic automaton that is built while it runs. A state is a set of instructions of the program. A transition is
/// computed when it is first taken.
///
/// A known transition costs one table lookup, a new one at most the size of the program, so matching takes time linear in the
/// text for any expression. All states are discarded when they exceed `QueryLimits.regexpCache`, or when those of all expressions
/// exceed `QueryLimits.regexpCaches`.
///
/// Invariant: `stateNumbers` has each state but the first; the instructions of all states fill `pool`; `transitions` has room
/// for `capacity` states.
final class LazyAutomaton {
  private let program: RegexpProgram
  /// Whether to search for a part of the text that matches. Each state then includes the beginning of the program.
  private let isSearch: Bool
  private let classCount: Int
  /// For each state and class the number of the next state, with `final` added if the match is decided there.
  private var transitions: UnsafeMutablePointer<UInt32>
  private var states: [State] = []
  /// The instructions of all states, one after another.
  private var pool: [Int32] = []
  /// The number of the state with each list of instructions, to which -1 is appended for an accepting state.
  private var stateNumbers: [[Int32]: UInt32] = [:]
  private let stateLimit: Int
  private var closure: RegexpClosure

  private struct State {
    /// The instructions of the state, as a range of the pool.
    var instructions: Range<Int>
    /// Whether the text matches regardless of the rest.
    var accepts: Bool
    /// Whether the text matches if it ends here.
    var acceptsAtEnd: Bool
    /// Whether no continuation of the text can match.
    var isDead: Bool { instructions.isEmpty && !acceptsAtEnd }
  }

  /// The value of a transition that has not been computed.
  private static let unknown = UInt32.max
  /// The flag of a transition to a state that decides the match.
  private static let final: UInt32 = 1 << 30
  /// The number of the first state, at the beginning of the text.
  private static let first: UInt32 = 0

  init(_ program: RegexpProgram, isSearch: Bool) {
    (self.program, self.isSearch) = (program, isSearch)
    classCount = program.classes.examples.count
    closure = RegexpClosure(size: program.instructions.count)
    stateLimit = max(QueryLimits.regexpCache / (classCount * MemoryLayout<UInt32>.size), 16)
    transitions = UnsafeMutablePointer<UInt32>.allocate(capacity: classCount)
    capacity = 1
  }

  /// The number of states for which `transitions` has room.
  private var capacity: Int

  deinit { transitions.deallocate() }

  /// The memory of the states in bytes. A state takes about as much besides its instructions, which are kept twice.
  var memory: Int {
    if states.isEmpty { return 0 }
    let table: Int = capacity * classCount * MemoryLayout<UInt32>.size
    let instructions: Int = pool.count * 2 * MemoryLayout<Int32>.size
    return table + instructions + states.count * Self.stateSize
  }
  private static let stateSize = 128

  /// Frees the memory of the states. The next match computes them again.
  func discardStates() {
    if states.isEmpty { return }
    states = []
    pool = []
    stateNumbers = [:]
    closure = RegexpClosure(size: program.instructions.count)
    transitions.deallocate()
    transitions = UnsafeMutablePointer<UInt32>.allocate(capacity: classCount)
    capacity = 1
  }

  /// The bytes that are matched between two stops, by known transitions.
  private static let bytesPerStop = 64 << 10

  /// Matches UTF-8. Returns nil if `work` runs out.
  func run(_ text: UnsafeRawBufferPointer, work: inout Int, _ pace: Unmanaged<EvaluationPace>?) -> Bool? {
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
        let stop = pace == nil ? end : position + min(Self.bytesPerStop, end - position)
        while position < stop {
          let number = classes.next(&position, end)
          var next = table[Int(state) &* width &+ number]
          if next >= Self.final {
            if next == Self.unknown {
              let before = work
              next = step(from: state, over: number, work: &work)
              table = transitions
              guard work >= 0 else { return nil }
              pace?._withUnsafeGuaranteedRef { $0.spend(before &- work) }
            }
            if next & Self.final != 0 { return states[Int(next & ~Self.final)].accepts }
          }
          state = next
        }
        pace?._withUnsafeGuaranteedRef { $0.spend(Self.bytesPerStop >> 4) }
        if pace?._withUnsafeGuaranteedRef({ $0.isCancelled }) ?? false { return nil }
      }
      return states[Int(state)].acceptsAtEnd
    }
  }
}

extension LazyAutomaton {
  /// Discards all states and creates the first one.
  private func begin() {
    states.removeAll(keepingCapacity: true)
    pool.removeAll(keepingCapacity: true)
    stateNumbers.removeAll(keepingCapacity: true)
    closure.begin()
    closure.add(program.entry, in: program, atStart: true, atEnd: false)
    _ = append(atStart: true)
  }

  /// Computes and stores the transition from a state by the class `number`.
  private func step(from state: UInt32, over number: Int, work: inout Int) -> UInt32 {
    let example = program.classes.examples[number]
    closure.begin()
    for index in states[Int(state)].instructions {
      guard case .set(let set, let next) = program.instructions[Int(pool[index])] else { continue }
      if program.sets[Int(set)].contains(example) { closure.add(next, in: program, atStart: false, atEnd: false) }
    }
    if isSearch { closure.add(program.entry, in: program, atStart: false, atEnd: false) }
    work &-= (states[Int(state)].instructions.count &+ closure.visits) &>> 3 &+ 1
    let (next, discarded) = intern()
    if !discarded { transitions[Int(state) &* classCount &+ number] = next }
    return next
  }

  /// Returns the state of the instructions in `closure`, and whether all other states were discarded to create it.
  private func intern() -> (number: UInt32, discarded: Bool) {
    closure.sort()
    var key = closure.instructions
    if closure.accepts { key.append(-1) }
    if let number = stateNumbers[key] { return (number, false) }
    var discarded = false
    if states.count >= stateLimit || pool.count >= QueryLimits.regexpCache / MemoryLayout<Int32>.size {
      let (instructions, accepts) = (closure.instructions, closure.accepts)
      begin()
      closure.begin()
      (closure.instructions, closure.accepts) = (instructions, accepts)
      discarded = true
    }
    let number = append(atStart: false)
    stateNumbers[key] = number
    checkInvariants()
    assert(number & ~Self.final == states.count - 1, "the new state is not the last one")
    return (number, discarded)
  }

  /// Creates a state from the instructions in `closure`. Returns its number, with `final` if it decides the match.
  private func append(atStart: Bool) -> UInt32 {
    let first = pool.count
    pool.append(contentsOf: closure.instructions)
    let accepts = closure.accepts
    var atEnd = accepts
    if !atEnd {
      closure.begin()
      for index in first..<pool.count {
        guard case .end(let next) = program.instructions[Int(pool[index])] else { continue }
        closure.add(next, in: program, atStart: atStart, atEnd: true)
      }
      atEnd = closure.accepts
    }
    let state = State(instructions: first..<pool.count, accepts: accepts, acceptsAtEnd: atEnd)
    states.append(state)
    addRow()
    let number = UInt32(states.count - 1)
    return state.isDead || (isSearch && accepts) ? number | Self.final : number
  }

  /// Checks the invariant in debug builds. O(1).
  private func checkInvariants() {
    assert(stateNumbers.count == states.count - 1, "a state has no number")
    assert(states.last?.instructions.upperBound == pool.count, "the pool has instructions of no state")
    assert(states.count <= capacity && states.count <= stateLimit, "there are more states than allowed")
  }

  /// Adds the row of transitions of the last state, all unknown.
  private func addRow() {
    if states.count > capacity {
      let larger = UnsafeMutablePointer<UInt32>.allocate(capacity: capacity * 2 * classCount)
      larger.update(from: transitions, count: capacity * classCount)
      transitions.deallocate()
      transitions = larger
      capacity *= 2
    }
    (transitions + (states.count - 1) * classCount).update(repeating: Self.unknown, count: classCount)
  }
}

/// The set of instructions that can be reached without reading a code point. It keeps its memory between uses.
struct RegexpClosure {
  /// The reached instructions that need a code point or the end of the text.
  var instructions: [Int32] = []
  var accepts = false
  /// The number of instructions visited since `begin`.
  private(set) var visits = 0
  /// The round in which each instruction was last reached.
  private var reached: [UInt32]
  private var round: UInt32 = 0
  private var stack: [Int32] = []
  /// The number of instructions of the program.
  private let size: Int

  /// Allocates nothing: most expressions of large definitions never match a text.
  init(size: Int) {
    self.size = size
    reached = []
  }

  mutating func begin() {
    instructions.removeAll(keepingCapacity: true)
    accepts = false
    visits = 0
    round &+= 1
    if round == 0 || reached.isEmpty {
      reached = Array(repeating: 0, count: size)
      round = 1
    }
  }

  /// Adds the instructions that are reachable from `entry` without reading a code point. O(instructions).
  mutating func add(_ entry: Int32, in program: RegexpProgram, atStart: Bool, atEnd: Bool) {
    stack.append(entry)
    while let next = stack.popLast() {
      guard reached[Int(next)] != round else { continue }
      reached[Int(next)] = round
      visits &+= 1
      switch program.instructions[Int(next)] {
      case .set: instructions.append(next)
      case .split(let first, let second):
        stack.append(second)
        stack.append(first)
      case .start(let next): if atStart { stack.append(next) }
      case .end(let following): if atEnd { stack.append(following) } else { instructions.append(next) }
      case .match: accepts = true
      }
    }
  }

  mutating func sort() { instructions.sort() }
}
