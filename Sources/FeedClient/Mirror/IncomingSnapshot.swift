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
    (self.feed, self.revision, self.at, self.elements) = (feed, revision, at, elements)
    (self.types, self.isLast, self.resetSections) = (types, isLast, resetSections)
  }

  /// Reads the `params` of the notification. O(bytes).
  public init(_ params: JSONView) throws(MalformedMessage) {
    let reader = MemberReader(object: params, place: "snapshot")
    try self.init(reader, elements: try reader.texts("elements"))
  }

  /// Reads the `params` of the notification, with other texts in place of the elements.
  package init(_ reader: MemberReader, elements: [[UInt8]]) throws(MalformedMessage) {
    feed = try reader.string("feed")
    revision = try reader.revision("revision")
    at = try reader.path("at")
    self.elements = elements
    types = try reader.types(count: elements.count)
    isLast = reader.flag("last")
    resetSections = reader.flag("reset") ? try reader.sections("sections") : nil
  }
}

/// The places of the rows of a snapshot that is being received in parts.
package struct SnapshotPlaces: Sendable {
  package let sections: [SectionSummary]
  /// The number of rows before each section, then the number of all rows.
  private let starts: [Int]
  /// The number of rows received so far, in all sections.
  private var received = 0

  /// Creates the places of a snapshot of which nothing was received.
  package init(_ sections: [SectionSummary]) {
    self.sections = sections
    starts = sections.reduce(into: [0]) { $0.append($0[$0.count - 1] + $1.count) }
  }

  /// Throws unless a part begins where the previous one ended, and the number of rows is right.
  /// - Parameter count: the number of rows of the part. They continue over the ends of sections.
  package func check(at: IndexPath, count: Int, isLast: Bool) throws(FeedFault) {
    let section = Int(at.section)
    let isPlaced =
      section < sections.count ? count == 0 || Int(at.row) < sections[section].count : section == 0 && at.row == 0
    let total = starts[sections.count]
    let start = starts[min(section, sections.count)] + Int(at.row)
    let end = received + count
    guard isPlaced, start == received, end <= total, !isLast || end == total else { throw .misplacedSnapshot(at: at) }
  }

  /// Counts the rows of a checked part.
  package mutating func add(count: Int) { received += count }
}

/// A snapshot that is being received: its sections and the rows so far.
struct IncomingSnapshot: Sendable {
  private var places: SnapshotPlaces
  private(set) var sections: [Mirror.Section] = []

  /// Creates a snapshot with these sections and no rows.
  init(sections: [SectionSummary]) { places = SnapshotPlaces(sections) }

  /// The sections, without rows.
  var emptySections: [Mirror.Section] {
    places.sections.map { Mirror.Section(name: $0.name, key: $0.key, rows: ChunkedList()) }
  }

  /// Throws unless `part` continues the previous one and the number of rows is right.
  func check(_ part: SnapshotPart) throws(FeedFault) {
    try places.check(at: part.at, count: part.elements.count, isLast: part.isLast)
  }

  /// Adds the rows of a checked part.
  mutating func add(_ part: SnapshotPart) {
    if sections.isEmpty { sections = emptySections }
    places.add(count: part.elements.count)
    var place = 0
    var section = Int(part.at.section)
    while place < part.elements.count {
      let room = places.sections[section].count - sections[section].rows.count
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
