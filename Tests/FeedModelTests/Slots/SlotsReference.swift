@testable import FeedModel

/// Builds a slots list row by row according to its rule.
struct SlotsReference {
  let rule: SlotsRule
  let counts: [Int]
  private var used: [Int]
  private var live: Set<Int>
  private(set) var rows: [SlotsItem] = []

  static func list(_ rule: SlotsRule, _ counts: [Int]) -> [SlotsItem] {
    var reference = SlotsReference(rule, counts)
    reference.build()
    return reference.rows
  }

  private init(_ rule: SlotsRule, _ counts: [Int]) {
    self.rule = rule
    self.counts = counts
    used = counts.map { _ in 0 }
    live = rule.defaultType == nil ? rule.repeatables.intersection(rule.pattern) : []
  }

  private mutating func next(of type: Int) -> SlotsItem? {
    if used[type] == counts[type] { return nil }
    used[type] += 1
    return SlotsItem(type: type, index: used[type] - 1)
  }

  /// Executes one pass over `types`; returns whether the list ends in it.
  private mutating func pass(_ types: [Int]) -> Bool {
    var foundEmpty = false
    for type in types {
      if used[type] < counts[type] {
        if foundEmpty && !live.contains(type) { continue }
        if let item = next(of: type) { rows.append(item) }
      } else if let fallback = rule.defaultType, let item = next(of: fallback) {
        rows.append(item)
      } else {
        if live.remove(type) == nil { foundEmpty = true }
        if live.isEmpty { return true }
      }
    }
    return false
  }

  private mutating func build() {
    if rule.pattern.isEmpty { return }
    if pass(rule.header) { return }
    while !pass(rule.pattern) {}
    for position in rule.fixed.keys.sorted() {
      guard let type = rule.fixed[position], !rule.pattern.contains(type), (0...rows.count).contains(position),
        let item = next(of: type)
      else { continue }
      rows.insert(item, at: position)
    }
  }
}
