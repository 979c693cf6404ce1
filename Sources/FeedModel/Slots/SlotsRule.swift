/// The rule by which the rows of several contents are interleaved in one list: Protocol/README.md, "Slots", defines how.
///
/// Types are indices, from 0, into the list of counts that a `SlotsLayout` is created with.
public struct SlotsRule: Equatable, Sendable {
  /// The types of the first pass.
  public var header: [Int]
  /// The types of every later pass.
  public var pattern: [Int] { didSet { sortInsertions() } }
  /// The types that continue when others are exhausted.
  public var repeatables: Set<Int>
  /// The type that replaces exhausted types.
  public var defaultType: Int?
  /// The types of fixed rows by their position in the finished list, from 0. Negative positions are ignored.
  public var fixed: [Int: Int] { didSet { sortInsertions() } }
  /// The entries of `fixed` that may be inserted: not at negative positions, no types of the pattern.
  private(set) var insertions = SlotsInsertions([])

  /// Creates a rule from its parts.
  public init(
    pattern: [Int], header: [Int] = [], repeatables: Set<Int> = [], defaultType: Int? = nil, fixed: [Int: Int] = [:]
  ) {
    (self.pattern, self.header, self.repeatables, self.defaultType) = (pattern, header, repeatables, defaultType)
    self.fixed = fixed
    sortInsertions()
  }

  private mutating func sortInsertions() {
    let shown = Set(pattern)
    insertions = SlotsInsertions(
      fixed.filter { $0.key >= 0 && !shown.contains($0.value) }.map { (position: $0.key, type: $0.value) }
        .sorted { $0.position < $1.position })
  }

  public static func == (a: SlotsRule, b: SlotsRule) -> Bool {
    a.header == b.header && a.pattern == b.pattern && a.repeatables == b.repeatables && a.defaultType == b.defaultType
      && a.fixed == b.fixed
  }
}

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
    (self.rule, self.counts) = (rule, counts)
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

  /// Processes one pass. Returns its types, and whether processing ends in it. `append` counts the rows as used.
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

  /// The types of the passes before one that finds a type newly empty, and their number; nil if it is the next one.
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
