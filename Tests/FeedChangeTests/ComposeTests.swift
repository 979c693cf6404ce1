import Testing

@testable import FeedChange

/// The cases in the description of `compose`.
@Suite struct ComposeTests {
  private func row(_ section: UInt32, _ row: UInt32) -> IndexPath { IndexPath(section: section, row: row) }

  @Test func addedThenDeletedIsNotListed() {
    #expect(compose(Change(added: [row(0, 2)]), Change(deleted: [row(0, 2)])) == .empty)
  }

  @Test func addedThenUpdatedIsAdded() {
    let composed = compose(Change(added: [row(0, 2)]), Change(added: [row(0, 0)], updated: [row(0, 3)]))
    #expect(composed == Change(added: [row(0, 0), row(0, 3)]))
  }

  @Test func updatedThenDeletedIsDeleted() {
    let composed = compose(Change(deleted: [row(0, 0)], updated: [row(0, 1)]), Change(deleted: [row(0, 1)]))
    #expect(composed == Change(deleted: [row(0, 0), row(0, 2)]))
  }

  @Test func updatesAreMerged() {
    let composed = compose(Change(updated: [row(0, 1), row(1, 0)]), Change(updated: [row(0, 0), row(1, 0)]))
    #expect(composed == Change(updated: [row(0, 0), row(0, 1), row(1, 0)]))
  }

  @Test func movedTwiceIsMovedOnce() {
    let first = Change(deleted: [row(0, 0)], added: [row(1, 1)], moves: [Move(deleted: 0, added: 0)])
    let second = Change(deleted: [row(1, 1)], added: [row(0, 2)], moves: [Move(deleted: 0, added: 0)])
    let composed = Change(deleted: [row(0, 0)], added: [row(0, 2)], moves: [Move(deleted: 0, added: 0)])
    #expect(compose(first, second) == composed)
  }

  @Test func movedThenDeletedIsDeleted() {
    let first = Change(deleted: [row(0, 0)], added: [row(1, 1)], moves: [Move(deleted: 0, added: 0)])
    #expect(compose(first, Change(deleted: [row(1, 1)])) == Change(deleted: [row(0, 0)]))
  }

  @Test func movedOutOfDeletedSectionIsAdded() {
    let first = Change(deleted: [row(0, 0)], added: [row(1, 0)], moves: [Move(deleted: 0, added: 0)])
    let second = Change(sectionsDeleted: [0])
    #expect(compose(first, second) == Change(added: [row(0, 0)], sectionsDeleted: [0]))
  }

  @Test func movedIntoDeletedSectionIsDeleted() {
    let first = Change(deleted: [row(0, 0)], added: [row(1, 0)], moves: [Move(deleted: 0, added: 0)])
    #expect(compose(first, Change(sectionsDeleted: [1])) == Change(deleted: [row(0, 0)], sectionsDeleted: [1]))
  }

  @Test func sectionAddedThenDeletedIsNotListed() {
    let first = Change(added: [row(1, 0), row(1, 1)], sectionsAdded: [SectionAddition(at: 1, name: "s")])
    #expect(compose(first, Change(sectionsDeleted: [1])) == .empty)
  }

  @Test func sectionDeletedThenAddedIsInBothLists() {
    let first = Change(sectionsDeleted: [1])
    let second = Change(added: [row(1, 0)], sectionsAdded: [SectionAddition(at: 1, name: "s")])
    let composed = Change(
      added: [row(1, 0)], sectionsDeleted: [1], sectionsAdded: [SectionAddition(at: 1, name: "s")])
    #expect(compose(first, second) == composed)
  }

  @Test func costDoesNotDependOnPositions() {
    let far = UInt32.max
    let composed = compose(Change(added: [row(far, far)]), Change(updated: [row(far, far)]))
    #expect(composed == Change(added: [row(far, far)]))
  }
}
