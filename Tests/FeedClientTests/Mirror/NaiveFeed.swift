import FeedChange
import TestSupport

@testable import FeedClient

/// The reference for mirrors: arrays, edited row by row according to "The change" in `Protocol/README.md`.
struct NaiveFeed: Equatable {
  struct Section: Equatable {
    var name: String
    var rows: [String] = []
  }

  var sections: [Section] = []

  mutating func apply(_ change: Change, _ elements: [String]) {
    for path in change.deleted.reversed() { sections[Int(path.section)].rows.remove(at: Int(path.row)) }
    for section in change.sectionsDeleted.reversed() { sections.remove(at: Int(section)) }
    for addition in change.sectionsAdded { sections.insert(Section(name: addition.name), at: Int(addition.at)) }
    for (path, element) in zip(change.added, elements) {
      sections[Int(path.section)].rows.insert(element, at: Int(path.row))
    }
    for (path, element) in zip(change.updated, elements.dropFirst(change.added.count)) {
      sections[Int(path.section)].rows[Int(path.row)] = element
    }
  }

  /// The compact JSON that `verify` digests.
  var json: String {
    "[" + sections.map { "[" + $0.rows.joined(separator: ",") + "]" }.joined(separator: ",") + "]"
  }

  var summaries: [SectionSummary] { sections.map { SectionSummary(name: $0.name, count: $0.rows.count) } }
}

extension NaiveFeed {
  /// Returns a random change that fits this feed: rows and sections are added, deleted, moved and updated.
  func randomChange(using random: inout SeededRandom) -> Change {
    var change = Change()
    func chance(_ percent: Int, _ random: inout SeededRandom) -> Bool {
      Int.random(in: 0..<100, using: &random) < percent
    }
    let structural = chance(20, &random)
    let goes = [5, 30, 90].randomElement(using: &random) ?? 5
    var counts: [Int] = []
    for (section, rows) in sections.map(\.rows).enumerated() {
      if structural, chance(25, &random) {
        change.sectionsDeleted.append(UInt32(section))
        continue
      }
      let gone = rows.indices.filter { _ in chance(goes, &random) }
      change.deleted += gone.map { IndexPath(section: UInt32(section), row: UInt32($0)) }
      counts.append(rows.count - gone.count)
    }
    var at = 0
    while structural, at <= counts.count, counts.count < 6 {
      if chance(30, &random) {
        change.sectionsAdded.append(
          SectionAddition(at: UInt32(at), name: "s\(Int.random(in: 0..<100, using: &random))"))
        counts.insert(0, at: at)
      }
      at += 1
    }
    for section in counts.indices where chance(60, &random) {
      var row = 0
      var left = counts[section]
      let comes = Int.random(in: 0...60, using: &random)
      while row < 40 {
        let path = IndexPath(section: UInt32(section), row: UInt32(row))
        if chance(comes, &random) {
          change.added.append(path)
        } else if left > 0 {
          left -= 1
          if chance(20, &random) { change.updated.append(path) }
        } else {
          break
        }
        row += 1
      }
    }
    let pairs = min(change.deleted.count, change.added.count)
    if pairs > 0, chance(50, &random) { change.moves = [Move(deleted: 0, added: UInt32(pairs - 1))] }
    return change
  }
}
