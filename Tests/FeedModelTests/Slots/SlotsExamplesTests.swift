import TestSupport
import Testing

@testable import FeedChange
@testable import FeedModel

/// The examples of the documentation of slots.
@Suite struct SlotsExamplesTests {
  private func show(_ rule: SlotsRule, _ contents: [[String]]) -> [String] {
    let layout = SlotsLayout(rule, counts: contents.map(\.count))
    return (0..<layout.count).map { row in
      let item = layout.item(at: row)
      return contents[item.type][item.index]
    }
  }

  private let alphabet = ["a", "b", "c"]
  private let numbers = ["1", "2", "3", "4", "5"]

  @Test func twoTypesAlternate() {
    expectEqual(show(SlotsRule(pattern: [0, 1]), [alphabet, numbers]), ["a", "1", "b", "2", "c", "3"])
  }

  @Test func typeCanOccurTwiceInAPattern() {
    expectEqual(show(SlotsRule(pattern: [0, 1, 1]), [alphabet, numbers]), ["a", "1", "2", "b", "3", "4", "c", "5"])
  }

  @Test func repeatableTypesContinue() {
    let rule = SlotsRule(pattern: [0, 1], repeatables: [1])
    expectEqual(show(rule, [alphabet, numbers]), ["a", "1", "b", "2", "c", "3", "4", "5"])
  }

  @Test func patternRestartsUntilAllTypesAreExhausted() {
    let months = ["Nov 2014", "Dec 2014", "Jan 2015"]
    let pictures = ["P1", "P2", "P3"]
    let rule = SlotsRule(pattern: [0, 1, 1, 0, 1])
    expectEqual(show(rule, [months, pictures]), ["Nov 2014", "P1", "P2", "Dec 2014", "P3", "Jan 2015"])
    expectEqual(SlotsLayout(rule, counts: [3, 3]).item(at: 3).type, 0)
  }

  @Test func patternContinuesWithoutAnExhaustedType() {
    let rule = SlotsRule(pattern: [0, 0, 0, 1], repeatables: [0])
    expectEqual(show(rule, [["s1", "s2", "s3", "s4"], []]), ["s1", "s2", "s3", "s4"])
    expectEqual(show(rule, [["s1", "s2", "s3", "s4"], ["ad1", "ad2"]]), ["s1", "s2", "s3", "ad1", "s4"])
  }

  @Test func defaultTypeFillsMissingRows() {
    let rule = SlotsRule(pattern: [0, 1, 0], defaultType: 0)
    expectEqual(show(rule, [["a", "b", "c", "d", "e"], ["x"]]), ["a", "x", "b", "c", "d", "e"])
  }

  @Test func fixedRowsAreInsertedLast() {
    let rule = SlotsRule(pattern: [0, 1], fixed: [0: 2, 3: 2, 4: 2, 99: 2])
    let shown = show(rule, [["1", "3"], ["2", "4"], ["a", "b", "c", "d"]])
    expectEqual(shown, ["a", "1", "2", "b", "c", "3", "4"])
  }

  @Test func listEndsIfTheHeaderIsIncomplete() {
    let rule = SlotsRule(pattern: [0], header: [0, 1, 0], fixed: [0: 2])
    expectEqual(show(rule, [["a", "b"], [], ["f"]]), ["a"])
  }

  @Test func rowsOfSectionsAreFlattened() {
    let change = Change(
      deleted: [IndexPath(section: 0, row: 1), IndexPath(section: 2, row: 0)], added: [IndexPath(section: 1, row: 2)],
      updated: [IndexPath(section: 0, row: 0)], moves: [Move(deleted: 1, added: 0)], sectionsDeleted: [1])
    let expected = Change(
      deleted: [1, 2, 3, 4].map { IndexPath(section: 0, row: $0) }, added: [IndexPath(section: 0, row: 3)],
      updated: [IndexPath(section: 0, row: 0)], moves: [Move(deleted: 3, added: 0)])
    var counts = SectionCounts([2, 2, 3])
    expectEqual(counts.follow(change, shift: 0), expected)
    expectEqual((0..<counts.count).map { counts[$0] }, [1, 3])
  }
}
