extension LazyAutomaton {
  /// Forgets all states and makes the first one.
  func begin() {
    states.removeAll(keepingCapacity: true)
    pool.removeAll(keepingCapacity: true)
    numbers.removeAll(keepingCapacity: true)
    closure.begin()
    closure.add(program.entry, in: program, atStart: true, atEnd: false)
    _ = append(atStart: true)
  }

  /// Computes where `number` leads from a state and remembers it.
  func step(from state: UInt32, over number: Int, work: inout Int) -> UInt32 {
    let example = program.classes.examples[number]
    closure.begin()
    for index in states[Int(state)].instructions {
      guard case .set(let set, let next) = program.instructions[Int(pool[index])] else { continue }
      if program.sets[Int(set)].contains(example) { closure.add(next, in: program, atStart: false, atEnd: false) }
    }
    if isSearch { closure.add(program.entry, in: program, atStart: false, atEnd: false) }
    work &-= (states[Int(state)].instructions.count &+ closure.visits) &>> 3 &+ 1
    let (next, forgot) = intern()
    if !forgot { transitions[Int(state) &* classCount &+ number] = next }
    return next
  }

  /// The state of the instructions in `closure`; tells whether the other states were forgotten for it.
  private func intern() -> (number: UInt32, forgot: Bool) {
    closure.sort()
    var key = closure.instructions
    // An accepting state differs from others by this mark alone.
    if closure.accepts { key.append(-1) }
    if let number = numbers[key] { return (number, false) }
    var forgot = false
    if states.count >= stateLimit || pool.count >= QueryLimits.regexpCache / MemoryLayout<Int32>.size {
      let (instructions, accepts) = (closure.instructions, closure.accepts)
      begin()
      closure.begin()
      (closure.instructions, closure.accepts) = (instructions, accepts)
      forgot = true
    }
    let number = append(atStart: false)
    numbers[key] = number
    return (number, forgot)
  }

  /// Makes a state of the instructions in `closure`; gives its number, marked when the run can end there.
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

  /// Makes room for the transitions of the last state, none of them known.
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
