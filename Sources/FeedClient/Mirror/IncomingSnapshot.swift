import FeedChange

/// A snapshot being received: its sections and the rows so far.
struct IncomingSnapshot: Sendable {
  private let summaries: [SectionSummary]
  private(set) var sections: [Mirror.Section] = []
  /// How many rows were received, over all sections.
  private var received = 0

  /// Creates a snapshot that will have these sections.
  init(sections: [SectionSummary]) { summaries = sections }

  /// The sections without any rows.
  var emptySections: [Mirror.Section] {
    summaries.map { Mirror.Section(name: $0.name, rows: ChunkedList()) }
  }

  /// Whether every row was received.
  private var isComplete: Bool { received == summaries.reduce(0) { $0 + $1.count } }

  /// Checks that `part` continues the one before it, and that the number of rows is right.
  func check(_ part: SnapshotPart) throws(FeedFault) {
    let section = Int(part.at.section)
    let isPlaced = section < summaries.count || (section == 0 && part.at.row == 0)
    let start = summaries.prefix(section).reduce(0) { $0 + $1.count } + Int(part.at.row)
    let total = summaries.reduce(0) { $0 + $1.count }
    let end = received + part.elements.count
    guard isPlaced, start == received, end <= total, !part.isLast || end == total else {
      throw .misplacedSnapshot(at: part.at)
    }
  }

  /// Adds the rows of a checked part.
  mutating func add(_ part: SnapshotPart) {
    if sections.isEmpty { sections = emptySections }
    received += part.elements.count
    var place = 0
    var section = Int(part.at.section)
    while place < part.elements.count {
      let room = summaries[section].count - sections[section].rows.count
      let end = min(part.elements.count, place + room)
      sections[section].rows.append(
        contentsOf: (place..<end).lazy.map {
          Row(element: part.elements[$0], type: part.types?[$0], origin: .snapshot, revision: part.revision)
        })
      place = end
      section += 1
    }
  }
}
