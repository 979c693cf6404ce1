/// Collects the instructions that can be reached without reading a code point. Keeps its memory between uses.
struct RegexpClosure {
  /// What was reached: the instructions that wait for a code point or for the end of the text.
  var instructions: [Int32] = []
  /// The match was reached.
  var accepts = false
  /// Instructions looked at since `begin`.
  private(set) var visits = 0
  /// The round in which each instruction was last reached.
  private var reached: [UInt32]
  private var round: UInt32 = 0
  private var stack: [Int32] = []

  init(size: Int) {
    reached = Array(repeating: 0, count: size)
  }

  mutating func begin() {
    instructions.removeAll(keepingCapacity: true)
    accepts = false
    visits = 0
    round &+= 1
    if round == 0 {
      for index in reached.indices { reached[index] = 0 }
      round = 1
    }
  }

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

  mutating func sort() {
    instructions.sort()
  }
}
