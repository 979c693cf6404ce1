/// Carries section indexes across a change, asked in ascending order.
struct SectionMap {
  private let removed: [UInt32]
  private let inserted: [UInt32]
  private var nextRemoved = 0
  private var nextInserted = 0

  /// A map over a change that removes `removed` (coordinates of the origin) and inserts `inserted` (of the destination).
  init(removed: [UInt32], inserted: [UInt32]) {
    self.removed = removed
    self.inserted = inserted
  }

  /// Where `section` stands in the destination; nil when it was removed. Never ask for a section before one asked for
  /// already. Amortised O(1) over the two lists and the questions.
  mutating func map(_ section: UInt32) -> UInt32? {
    while nextRemoved < removed.count, removed[nextRemoved] < section { nextRemoved += 1 }
    if nextRemoved < removed.count, removed[nextRemoved] == section { return nil }
    var target = section &- UInt32(truncatingIfNeeded: nextRemoved) &+ UInt32(truncatingIfNeeded: nextInserted)
    while nextInserted < inserted.count, inserted[nextInserted] <= target {
      nextInserted += 1
      target &+= 1
    }
    return target
  }
}
