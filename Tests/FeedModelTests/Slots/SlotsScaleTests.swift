import TestSupport
import Testing

@testable import FeedChange
@testable import FeedModel

/// Lists of billions of rows: an operation that visited all of them would not terminate.
struct SlotsScaleTests {
  private let many = 1_000_000_000
  /// Three styles, then an advertisement; styles continue without advertisements.
  private let styles = SlotsRule(pattern: [0, 0, 0, 1], repeatables: [0])

  private func row(_ row: Int) -> IndexPath { IndexPath(section: 0, row: UInt32(row)) }

  @Test func positionsAreComputed() {
    let layout = SlotsLayout(SlotsRule(pattern: [0, 0, 0, 1], header: [1]), counts: [3 * many, many])
    expectEqual(layout.count, 4 * many)
    expectEqual(layout.item(at: 4 * many - 3), SlotsItem(type: 0, index: 3 * many - 3))
    expectEqual(layout.row(of: SlotsItem(type: 1, index: many - 1)), 4 * (many - 1))
  }

  @Test func appendedRowsOfOneTypeAreAtMostOneChange() {
    let (old, added) = (SlotsLayout(styles, counts: [many, 10]), FlatChange(Change(added: [row(many)])))
    let style = old.change(to: SlotsLayout(styles, counts: [many + 1, 10]), contents: [added, .none])
    expectEqual(style, Change(added: [row(many + 10)]))
    let advertisement = FlatChange(Change(added: [row(10)]))
    let between = old.change(to: SlotsLayout(styles, counts: [many, 11]), contents: [.none, advertisement])
    expectEqual(between, Change(added: [row(43)]))
    // Without advertisements, no style beyond the end shows.
    let rule = SlotsRule(pattern: [0, 0, 0, 1])
    let beyond = SlotsLayout(rule, counts: [many, 10])
    expect(beyond.change(to: SlotsLayout(rule, counts: [many + 1, 10]), contents: [added, .none]).isEmpty)
  }

  @Test func firstAdvertisementShiftsOnlyTheAdvertisements() {
    let old = SlotsLayout(styles, counts: [many, 10])
    let new = SlotsLayout(styles, counts: [many, 11])
    let change = old.change(to: new, contents: [.none, FlatChange(Change(added: [row(0)]))])
    expect(change.added.count == 11 && change.deleted.count == 10 && change.moves.count == 10)
  }

  @Test func deletionAndAdditionFarApartAreTwoRows() {
    let old = SlotsLayout(styles, counts: [many, 10])
    let content = Change(deleted: [row(many / 2)], added: [row(many - 1)], updated: [row(7)])
    let change = old.change(to: old, contents: [FlatChange(content), .none])
    let expected = Change(deleted: [row(many / 2 + 10)], added: [row(many + 9)], updated: [row(9)])
    expectEqual(change, expected)
  }

  @Test func listOfOneTypeShiftsLikeAQueue() {
    let rule = SlotsRule(pattern: [0])
    let layout = SlotsLayout(rule, counts: [many])
    let content = Change(deleted: [row(0)], added: [row(many - 1)])
    expectEqual(layout.change(to: layout, contents: [FlatChange(content)]), content)
  }

  @Test("fixed rows that stay are no blocks of their own")
  func fixedRowsThatStay() {
    let fixed = Dictionary(uniqueKeysWithValues: (0..<3000).map { (2 * $0 + 1, 1) })
    let rule = SlotsRule(pattern: [0], fixed: fixed)
    for counts in [[many, many], [5000, 5000], [5000, 2000]] {
      let old = SlotsLayout(rule, counts: counts)
      for type in 0..<2 {
        for place in [counts[type], counts[type] - 10] {
          var (after, contents) = (counts, [FlatChange.none, .none])
          after[type] += 1
          contents[type] = FlatChange(Change(added: [row(place)]))
          let difference = SlotsDifference(
            from: old, to: SlotsLayout(rule, counts: after, former: old), contents: contents)
          expect(difference.blocks.count < 50, "type \(type) of \(counts) at \(place)")
        }
      }
    }
  }
}
