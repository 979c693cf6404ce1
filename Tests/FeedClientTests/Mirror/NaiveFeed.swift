import FeedChange

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
