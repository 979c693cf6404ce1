import FeedChange
import TestSupport
import Testing

@testable import FeedModel

/// The row counts of sections, compared with an array.
struct SectionCountsTests {
  @Test(arguments: UInt64(1)...4) func sumsMatchAnArrayAfterEveryMutation(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    var expected = (0..<Int.random(in: 0...40, using: &random)).map { _ in Int.random(in: 0...9, using: &random) }
    var counts = SectionCounts(expected)
    for _ in 0..<400 {
      let index = Int.random(in: 0...expected.count, using: &random)
      switch Int.random(in: 0...2, using: &random) {
      case 0:
        expected.insert(3, at: index)
        counts.insert(3, at: index)
      case 1 where index < expected.count:
        expected.remove(at: index)
        counts.remove(at: index)
      case _ where index < expected.count:
        expected[index] += 1
        counts.add(1, at: index)
      default: continue
      }
      expect(counts.count == expected.count && counts.total == expected.reduce(0, +))
      expect(expected.indices.allSatisfy { counts[$0] == expected[$0] })
      expect(expected.indices.allSatisfy { counts.start(of: $0) == expected[..<$0].reduce(0, +) })
    }
  }

  @Test func changeIsJoinedIntoOneSection() {
    var counts = SectionCounts([2, 0, 3])
    var change = Change(
      deleted: [IndexPath(section: 2, row: 1)],
      added: [IndexPath(section: 0, row: 0), IndexPath(section: 1, row: 2)],
      updated: [IndexPath(section: 1, row: 0)], moves: [Move(deleted: 0, added: 1)], sectionsDeleted: [0, 1],
      sectionsAdded: [SectionAddition(at: 0, name: "new")])
    change.transfers = [Transfer(from: IndexPath(section: 0, row: 1), added: 0, keepsElement: true)]
    let flat = counts.follow(change, shift: 0)
    expectEqual(flat.deleted.map(\.row), [0, 1, 3])
    expectEqual(flat.added.map(\.row), [0, 3])
    expectEqual(flat.updated.map(\.row), [1])
    expectEqual(flat.moves, [Move(deleted: 1, added: 0), Move(deleted: 2, added: 1)])
    expectEqual(flat.moves.map(\.keepsElement), [true, false])
    expectEqual((0..<counts.count).map { counts[$0] }, [1, 3])
  }
}
