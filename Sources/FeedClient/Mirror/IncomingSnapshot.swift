import FeedChange

/// A snapshot that is being received: its sections and the rows so far.
struct IncomingSnapshot: Sendable {
  private let summaries: [SectionSummary]
  /// The number of rows before each section, then the number of all rows.
  private let starts: [Int]
  private(set) var sections: [Mirror.Section] = []
  /// The number of rows received so far, in all sections.
  private var received = 0

  /// Creates a snapshot with these sections and no rows.
  init(sections: [SectionSummary]) {
    summaries = sections
    starts = sections.reduce(into: [0]) { $0.append($0[$0.count - 1] + $1.count) }
  }

  /// The sections, without rows.
  var emptySections: [Mirror.Section] {
    summaries.map { Mirror.Section(name: $0.name, rows: ChunkedList()) }
  }

  /// Whether all rows were received.
  private var isComplete: Bool { received == total }
  private var total: Int { starts[starts.count - 1] }

  /// Throws unless `part` continues the previous one and the number of rows is right.
  func check(_ part: SnapshotPart) throws(FeedFault) {
    let section = Int(part.at.section)
    let isPlaced = section < summaries.count || (section == 0 && part.at.row == 0)
    let start = starts[min(section, summaries.count)] + Int(part.at.row)
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
