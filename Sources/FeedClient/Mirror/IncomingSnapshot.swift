import FeedChange
import FeedJSON

/// A `snapshot` notification: consecutive rows of a feed (`Protocol/README.md`, "Watching").
public struct SnapshotPart: Equatable, Sendable {
  public var feed: String
  public var revision: UInt64
  /// The place of the first element. Elements beyond the end of a section continue in the next one.
  public var at: IndexPath
  /// The compact JSON texts of the elements.
  public var elements: [[UInt8]]
  /// The type of each of the elements; nil if rows have no types.
  public var types: [String?]?
  /// Whether this is the last part.
  public var isLast: Bool
  /// The sections of a snapshot that resets the watch, in its first part; otherwise nil.
  public var resetSections: [SectionSummary]?

  public init(
    feed: String, revision: UInt64, at: IndexPath, elements: [[UInt8]], types: [String?]? = nil, isLast: Bool,
    resetSections: [SectionSummary]? = nil
  ) {
    self.feed = feed
    self.revision = revision
    self.at = at
    self.elements = elements
    self.types = types
    self.isLast = isLast
    self.resetSections = resetSections
  }

  /// Reads the `params` of the notification. O(bytes).
  public init(_ params: JSONView) throws(MalformedMessage) {
    let reader = MemberReader(object: params, place: "snapshot")
    feed = try reader.string("feed")
    revision = try reader.revision("revision")
    at = try reader.path("at")
    elements = try reader.texts("elements")
    types = try reader.types(count: elements.count)
    isLast = reader.flag("last")
    resetSections = reader.flag("reset") ? try reader.sections("sections") : nil
  }
}

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
