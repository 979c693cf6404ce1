import TestSupport
import Testing

@testable import FeedChange
@testable import FeedModel

@Suite("Rows of a managed feed")
struct ManagedDiffTests {
  /// Returns all sequences of distinct keys below `keys`, with each row in one of `sections` and of one of `versions`.
  private func allStates(keys: Int, sections: [String], versions: Int) -> [[SampleRow]] {
    var all: [[SampleRow]] = [[]]
    var last = all
    for _ in 0..<keys {
      last = last.flatMap { state in
        (0..<keys).filter { key in !state.contains { $0.key == key } }.flatMap { key in
          sections.flatMap { section in
            (0..<versions).map { state + [SampleRow(key: key, section: section, version: $0)] }
          }
        }
      }
      all += last
    }
    return all
  }

  /// The length of the longest common subsequence.
  private func common<Value: Equatable>(_ a: [Value], _ b: [Value]) -> Int {
    var lengths = Array(repeating: Array(repeating: 0, count: b.count + 1), count: a.count + 1)
    for (i, x) in a.enumerated() {
      for (j, y) in b.enumerated() {
        lengths[i + 1][j + 1] = x == y ? lengths[i][j] + 1 : max(lengths[i][j + 1], lengths[i + 1][j])
      }
    }
    return lengths[a.count][b.count]
  }

  /// Checks that the change between two states is valid, leads to the second state and is minimal.
  private func check(_ before: [SampleRow], _ after: [SampleRow], _ sample: ManagedSample, bySection: Bool) throws {
    try sample.set(before)
    try sample.setAndRollBack(after)
    let expectedBefore = ManagedSample.expected(before, bySection: bySection)
    expectEqual(FeedMirrors.state(of: sample.feed), expectedBefore, "\(before) → \(after), rolled back")
    let change = try sample.set(after)
    let expected = ManagedSample.expected(after, bySection: bySection)
    expectEqual(sample.mirrors.copies["people"], expected, "\(before) → \(after) by \(change)")
    expectEqual(sample.mirrors.faults, [])

    let staying = common(expectedBefore.names, expected.names)
    expectEqual(change.sectionsAdded.count, expected.names.count - staying)
    expectEqual(change.sectionsDeleted.count, expectedBefore.names.count - staying)
    let was = Dictionary(uniqueKeysWithValues: before.map { ($0.key, $0) })
    if !bySection {
      let kept = common(before.map(\.key), after.map(\.key))
      expectEqual(change.added.count, after.count - kept, "\(before) → \(after) by \(change)")
      expectEqual(change.deleted.count, before.count - kept)
      expectEqual(change.moves.count, after.count { was[$0.key] != nil } - kept)
      let unlisted = after.indices.filter { !change.added.contains(IndexPath(section: 0, row: UInt32($0))) }
      let updated = unlisted.filter { after[$0].version != was[after[$0].key]?.version }
      expectEqual(change.updated.map { Int($0.row) }, updated)
    }
    for move in change.moves {
      let from = change.deleted[Int(move.deleted)]
      let to = change.added[Int(move.added)]
      let old = expectedBefore.rows[Int(from.section)][Int(from.row)]
      let new = expected.rows[Int(to.section)][Int(to.row)]
      expectEqual(old.split(separator: ",").first, new.split(separator: ",").first, "the identities must be equal")
    }
  }

  @Test func everySmallChangeOfOneSectionIsMinimal() throws {
    let sample = try ManagedSample(bySection: false)
    let afters = allStates(keys: 3, sections: [""], versions: 2)
    for before in allStates(keys: 4, sections: [""], versions: 1) {
      for after in afters { try check(before, after, sample, bySection: false) }
    }
  }

  @Test func everySmallChangeOfTwoSectionsIsMinimal() throws {
    let sample = try ManagedSample(bySection: true)
    let afters = allStates(keys: 3, sections: ["a", "b"], versions: 2)
    for before in allStates(keys: 2, sections: ["a", "b", ""], versions: 1) {
      for after in afters { try check(before, after, sample, bySection: true) }
    }
  }

  @Test func randomChangesOfManyRowsAreValid() throws {
    for bySection in [false, true] {
      var random = SeededRandom(seed: .random(in: 0...UInt64.max))
      let sample = try ManagedSample(bySection: bySection)
      var rows: [SampleRow] = []
      for step in 0..<200 {
        switch Int.random(in: 0..<5, using: &random) {
        case 0: rows.shuffle(using: &random)
        case 1: rows.removeAll { _ in Int.random(in: 0..<8, using: &random) == 0 }
        case 2: rows.sort { $0.key < $1.key }
        default:
          for _ in 0..<10 {
            let key = Int.random(in: 0..<400, using: &random)
            let row = SampleRow(key: key, section: "s\(key % 7)", version: step)
            if let place = rows.firstIndex(where: { $0.key == key }) { rows[place] = row } else { rows.append(row) }
          }
        }
        try sample.set(rows)
        expectEqual(
          sample.mirrors.copies["people"], ManagedSample.expected(rows, bySection: bySection),
          "seed \(random.seed), step \(step)")
        expectEqual(sample.mirrors.faults, [], "seed \(random.seed), step \(step)")
        if !sample.mirrors.faults.isEmpty { return }
      }
    }
  }

  @Test func equalRowsMakeNoCommit() throws {
    let sample = try ManagedSample(bySection: true)
    let rows = (0..<50).map { SampleRow(key: $0, section: "s\($0 % 3)") }
    try expect(!sample.set(rows).isEmpty)
    let revision = sample.catalog.revision
    try expect(sample.set(rows).isEmpty)
    expectEqual(sample.catalog.revision, revision)
  }
}
