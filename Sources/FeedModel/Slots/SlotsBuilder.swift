/// Computes the runs of a slots list. It processes all passes up to the next exhaustion of a type at once.
///
/// O(pattern length · types): every pass that is processed alone exhausts a type, ends a repeatable or ends the list.
struct SlotsBuilder {
  private let rule: SlotsRule
  private let counts: [Int]
  /// The number of rows of each type that are shown so far.
  private(set) var used: [Int]
  private(set) var runs: [SlotsRun] = []
  private var live: [Bool]
  private var liveCount = 0
  /// For every type, the number of rows in the pass under construction.
  private var perPass: [Int]
  private var rows = 0

  init(_ rule: SlotsRule, counts: [Int]) {
    self.rule = rule
    self.counts = counts
    used = [Int](repeating: 0, count: counts.count)
    live = [Bool](repeating: false, count: counts.count)
    perPass = used
    if rule.defaultType == nil {
      for type in rule.pattern where rule.repeatables.contains(type) && !live[type] {
        live[type] = true
        liveCount += 1
      }
    }
  }

  /// Builds all runs. Returns whether processing got beyond the header; only then fixed rows follow.
  mutating func build() -> Bool {
    if rule.pattern.isEmpty { return false }
    let (types, ended) = pass(over: rule.header)
    append(types, passes: 1)
    if ended { return false }
    while true {
      if let (types, passes) = steadyPasses() { append(types, passes: passes) }
      let (types, ended) = pass(over: rule.pattern)
      append(types, passes: 1)
      if ended { return true }
    }
  }

  private func remaining(_ type: Int) -> Int { counts[type] - used[type] }

  /// Processes one pass step by step. Returns the types that it shows, and whether processing ends in it. `append`
  /// counts the rows as used.
  private mutating func pass(over list: [Int]) -> (types: [Int], ended: Bool) {
    var types: [Int] = []
    var foundEmpty = false
    defer { for type in types { perPass[type] = 0 } }
    func has(_ type: Int, _ builder: SlotsBuilder) -> Bool { builder.remaining(type) > builder.perPass[type] }
    for type in list {
      var shown = type
      if has(type, self) {
        if foundEmpty && !live[type] { continue }
      } else if let fallback = rule.defaultType, has(fallback, self) {
        shown = fallback
      } else {
        if live[type] {
          live[type] = false
          liveCount -= 1
        } else {
          foundEmpty = true
        }
        if liveCount == 0 { return (types, true) }
        continue
      }
      perPass[shown] += 1
      types.append(shown)
    }
    return (types, false)
  }

  /// The types of every pass before the next one that finds a type newly empty, and the number of such passes; nil if
  /// the next pass is that one.
  private mutating func steadyPasses() -> (types: [Int], passes: Int)? {
    var types: [Int] = []
    var foundEmpty = false
    defer { for type in types { perPass[type] = 0 } }
    for type in rule.pattern {
      var shown = type
      if remaining(type) > 0 {
        // A type that runs out here is skipped anyway: the pass is already marked as having found an empty type.
        if foundEmpty && !live[type] { continue }
      } else if let fallback = rule.defaultType, remaining(fallback) > 0 {
        shown = fallback
      } else if live[type] || liveCount == 0 {
        return nil
      } else {
        foundEmpty = true
        continue
      }
      perPass[shown] += 1
      types.append(shown)
    }
    let passes = types.map { remaining($0) / perPass[$0] }.min() ?? 0
    return passes > 0 ? (types, passes) : nil
  }

  private mutating func append(_ types: [Int], passes: Int) {
    if types.isEmpty { return }
    var emissions = types.map { type in
      perPass[type] += 1
      return SlotsRun.Emission(first: used[type] + perPass[type] - 1, type: type, step: 0)
    }
    for (slot, type) in types.enumerated() { emissions[slot].step = perPass[type] }
    for type in types {
      used[type] += perPass[type] * passes
      perPass[type] = 0
    }
    runs.append(SlotsRun(start: rows, passes: passes, emissions: emissions))
    rows += types.count * passes
  }
}
