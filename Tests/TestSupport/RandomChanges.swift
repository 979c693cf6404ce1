import FeedChange

/// A pseudo-random generator (SplitMix64). The seed determines the sequence, so that a failure can be repeated.
public struct SeededRandom: RandomNumberGenerator, Sendable {
  /// The seed, which failing tests print.
  public let seed: UInt64
  private var state: UInt64

  public init(seed: UInt64) {
    self.seed = seed
    state = seed
  }

  public mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}

/// Generates random changes that fit a feed.
package struct RandomChanges {
  package var random: SeededRandom
  /// The maximum number of rows of each kind in a change.
  package var rows = 3
  /// The maximum number of deleted sections in a change.
  package var sections = 1

  package init(random: SeededRandom, rows: Int = 3, sections: Int = 1) {
    self.random = random
    self.rows = rows
    self.sections = sections
  }

  /// Returns a change that fits a feed with these row counts.
  package mutating func next(for rowCounts: [Int]) -> Change {
    var change = Change()
    if Int.random(in: 0..<4, using: &random) == 0 {
      change.sectionsDeleted = choose(rowCounts.indices.map { UInt32($0) }, upTo: sections)
    }
    let survivors = rowCounts.indices.map { UInt32($0) }.filter { !change.sectionsDeleted.contains($0) }
    change.deleted = choose(survivors.flatMap { paths($0, rowCounts[Int($0)]) }, upTo: rows)
    var counts = survivors.map { section in
      rowCounts[Int(section)] - change.deleted.count { $0.section == section }
    }
    if Int.random(in: 0..<4, using: &random) == 0 || counts.isEmpty {
      let at = UInt32.random(in: 0...UInt32(counts.count), using: &random)
      change.sectionsAdded = [SectionAddition(at: at, name: "s\(Int.random(in: 0..<100, using: &random))")]
      counts.insert(0, at: Int(at))
    }
    var added: [IndexPath: Bool] = [:]
    for section in counts.indices {
      let count = Int.random(in: 0...rows, using: &random)
      counts[section] += count
      let places = choose(paths(UInt32(section), counts[section]), exactly: count)
      for path in places { added[path] = true }
    }
    change.added = added.keys.sorted()
    let stayed = counts.indices.flatMap { paths(UInt32($0), counts[$0]) }.filter { added[$0] == nil }
    change.updated = choose(stayed, upTo: rows)
    let pairs = Int.random(in: 0...min(change.deleted.count, change.added.count), using: &random)
    let from = choose(change.deleted.indices.map { UInt32($0) }, exactly: pairs)
    let to = change.added.indices.map { UInt32($0) }.shuffled(using: &random)
    change.moves = zip(from, to).map { Move(deleted: $0, added: $1) }
    let departed = change.sectionsDeleted.flatMap { paths($0, rowCounts[Int($0)]) }
    let transferred = choose(departed, upTo: to.count - pairs)
    change.transfers = zip(transferred, to[pairs...]).map { Transfer(from: $0, added: $1, keepsElement: false) }
    return change
  }

  private func paths(_ section: UInt32, _ count: Int) -> [IndexPath] {
    (0..<count).map { IndexPath(section: section, row: UInt32($0)) }
  }

  private mutating func choose<Value: Comparable>(_ values: [Value], upTo limit: Int) -> [Value] {
    choose(values, exactly: Int.random(in: 0...min(limit, values.count), using: &random))
  }

  private mutating func choose<Value: Comparable>(_ values: [Value], exactly count: Int) -> [Value] {
    values.shuffled(using: &random).prefix(count).sorted()
  }
}
