import TestSupport
import Testing

@testable import FeedChange

/// Applying changes to arrays, and refusing changes that do not fit.
struct ApplyTests {
  private func row(_ section: UInt32, _ row: UInt32) -> IndexPath { IndexPath(section: section, row: row) }

  @Test(arguments: UInt64(1)...200)
  func applyAgreesWithTheProtocol(_ seed: UInt64) throws {
    var changes = RandomChanges(random: SeededRandom(seed: seed), rows: 5, sections: 2)
    var feed = TokenFeed(rowCounts: [Int(seed % 9), 3, Int(seed % 4)])
    var mirror = feed.sections.map(\.rows)
    for step in 0..<20 {
      let change = changes.next(for: feed.rowCounts)
      feed = feed.applying(change)
      let elements = (change.added + change.updated).map { feed.sections[Int($0.section)].rows[Int($0.row)] }
      try apply(change, to: &mirror, elements: elements)
      expectEqual(mirror, feed.sections.map(\.rows), "seed \(seed) step \(step)")
    }
  }

  @Test func applySectionsToNames() {
    var names = ["a", "b", "c"]
    let change = Change(
      sectionsDeleted: [0, 2], sectionsAdded: [SectionAddition(at: 0, name: "x"), SectionAddition(at: 2, name: "y")])
    change.applySections(to: &names) { $0.name }
    expectEqual(names, ["x", "b", "y"])
  }

  static let misfits: [(Change, ChangeError)] = [
    (
      Change(deleted: [IndexPath(section: 0, row: 2)]),
      .rowOutOfRange(.deleted, place: 0, IndexPath(section: 0, row: 2))
    ),
    (Change(deleted: [IndexPath(section: 2, row: 0)]), .sectionOutOfRange(.deleted, place: 0, section: 2)),
    (
      Change(deleted: [IndexPath(section: 0, row: 1), IndexPath(section: 0, row: 1)]),
      .notAscending(.deleted, place: 1)
    ),
    (
      Change(deleted: [IndexPath(section: 1, row: 0)], sectionsDeleted: [1]),
      .rowOfDeletedSection(place: 0, IndexPath(section: 1, row: 0))
    ),
    (Change(sectionsDeleted: [2]), .sectionOutOfRange(.sectionsDeleted, place: 0, section: 2)),
    (
      Change(sectionsAdded: [SectionAddition(at: 3, name: "")]),
      .sectionOutOfRange(.sectionsAdded, place: 0, section: 3)
    ),
    (Change(added: [IndexPath(section: 1, row: 2)]), .rowOutOfRange(.added, place: 0, IndexPath(section: 1, row: 2))),
    (Change(added: [IndexPath(section: 2, row: 0)]), .sectionOutOfRange(.added, place: 0, section: 2)),
    (
      Change(updated: [IndexPath(section: 1, row: 1)]),
      .rowOutOfRange(.updated, place: 0, IndexPath(section: 1, row: 1))
    ),
    (Change(updated: [IndexPath(section: 9, row: 1)]), .sectionOutOfRange(.updated, place: 0, section: 9)),
    (
      Change(added: [IndexPath(section: 0, row: 0)], updated: [IndexPath(section: 0, row: 0)]),
      .addedAndUpdated(place: 0, IndexPath(section: 0, row: 0))
    ),
    (Change(added: [IndexPath(section: 0, row: 0)], moves: [Move(deleted: 0, added: 0)]), .badMove(place: 0)),
    (Change(deleted: [IndexPath(section: 0, row: 0)], moves: [Move(deleted: 0, added: 0)]), .badMove(place: 0)),
    (
      Change(
        deleted: [IndexPath(section: 0, row: 0), IndexPath(section: 0, row: 1)], added: [IndexPath(section: 1, row: 0)],
        moves: [Move(deleted: 0, added: 0), Move(deleted: 1, added: 0)]), .badMove(place: 1)
    ),
  ]

  @Test(arguments: misfits)
  func changeThatDoesNotFitThrowsAndModifiesNothing(_ change: Change, _ error: ChangeError) {
    var mirror = [["a", "b"], ["c"]]
    let elements = [String](repeating: "new", count: change.added.count + change.updated.count)
    #expect(throws: error) { try apply(change, to: &mirror, elements: elements) }
    expectEqual(mirror, [["a", "b"], ["c"]])
    expect(!error.description.isEmpty)
  }

  @Test func numberOfElementsMustMatch() {
    var mirror = [["a"]]
    let change = Change(added: [row(0, 1)], updated: [row(0, 0)])
    #expect(throws: ChangeError.elementCount(expected: 2, found: 1)) {
      try apply(change, to: &mirror, elements: ["new"])
    }
    expectEqual(mirror, [["a"]])
  }
}
