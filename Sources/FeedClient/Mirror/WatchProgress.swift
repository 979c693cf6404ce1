import FeedChange
import FeedJSON
import FeedWire

/// The revision of a watcher's copy, and the messages that may follow (`Protocol/README.md`, "Watching").
///
/// Invariant: `current` is at least `revision`, and the feed did not change between them.
public struct WatchProgress: Equatable, Sendable {
  private enum Phase: Equatable, Sendable {
    /// A snapshot is expected; `revision` is that of its first part.
    case snapshot(revision: UInt64?)
    case live
  }

  public private(set) var epoch: String
  /// The revision of the rows; while the first snapshot is being received, the revision that they will have.
  public private(set) var revision: UInt64
  /// The last revision up to which the feed is known to be unchanged since ``revision``.
  public private(set) var current: UInt64
  private var phase: Phase
  /// The last complete state before the snapshot that is being received.
  private var complete: State?

  /// A state of the rows, valid from `revision` to `current`.
  private struct State: Equatable, Sendable {
    var epoch: String
    var revision: UInt64
    var current: UInt64
  }

  /// Creates the progress of a new watch.
  /// - Parameters:
  ///   - since: the requested position; a resumed watch continues from there.
  ///   - initial: whether a snapshot was requested.
  public init(_ start: WatchStart, since: FeedPosition?, initial: Bool) {
    epoch = start.epoch
    complete = since.map { State(epoch: $0.epoch, revision: $0.revision, current: $0.revision) }
    if start.resumed, let since {
      revision = since.revision
      current = since.revision
      phase = .live
    } else {
      revision = start.revision
      current = start.revision
      phase = initial ? .snapshot(revision: nil) : .live
    }
  }

  /// Continues with another watch, which was requested with `since` at ``position``.
  public mutating func restart(_ start: WatchStart, initial: Bool) {
    let before = lastComplete
    self = WatchProgress(start, since: position, initial: initial)
    complete = before
    guard start.resumed, let before, before.epoch == start.epoch else { return }
    (revision, current) = (before.revision, before.current)
  }

  private var lastComplete: State? {
    phase == .live ? State(epoch: epoch, revision: revision, current: current) : complete
  }

  /// The position from which a later watch can resume: the last complete state; nil before the first.
  public var position: FeedPosition? { lastComplete.map { FeedPosition(epoch: $0.epoch, revision: $0.current) } }
  /// Whether the copy is complete and no snapshot is expected.
  public var isLive: Bool { phase == .live }

  /// Whether the copy equals the feed at `revision`.
  public func holds(at revision: UInt64) -> Bool { isLive && self.revision <= revision && revision <= current }

  public mutating func record(snapshot revision: UInt64, isReset: Bool, isLast: Bool) throws(FeedFault) {
    if isReset {
      complete = lastComplete
    } else {
      switch phase {
      case .live: throw .unexpectedSnapshot(revision: revision)
      case .snapshot(let first?) where first != revision: throw .mixedSnapshot(expected: first, found: revision)
      case .snapshot: break
      }
    }
    (self.revision, current) = (revision, revision)
    phase = isLast ? .live : .snapshot(revision: revision)
  }

  public mutating func record(deltaFrom from: UInt64, to revision: UInt64) throws(FeedFault) {
    guard isLive else { throw .deltaInsideSnapshot(revision: revision) }
    guard holds(at: from) else { throw .gap(expected: self.revision, found: from) }
    guard revision > from else { throw .backwards(from: from, revision: revision) }
    (self.revision, current) = (revision, revision)
  }

  public mutating func record(_ bookmark: Bookmark) throws(FeedFault) {
    guard bookmark.epoch == epoch else { throw .foreign("epoch \(bookmark.epoch)") }
    // A bookmark during a snapshot has no effect.
    guard isLive else { return }
    guard bookmark.revision <= current, bookmark.current >= current else {
      throw .gap(expected: current, found: bookmark.revision)
    }
    current = bookmark.current
  }
}

/// The number of rows of each section of a feed, kept up to date by a watch without elements.
///
/// Invariant: `sections` are those of the feed at `revision`.
public struct FeedCounts: Equatable, Sendable {
  /// The sections with their numbers of rows, in order.
  public private(set) var sections: [SectionSummary]
  public private(set) var revision: UInt64

  /// The number of rows of all sections.
  public var total: Int { sections.reduce(0) { $0 + $1.count } }

  /// Creates the counts at the start of a watch.
  public init(_ start: WatchStart) {
    sections = start.sections
    revision = start.revision
  }

  /// Applies the `params` of a `delta`, or of a `snapshot` that resets the watch. Ignores a revision that the counts
  /// already have, such as that of the first delta of a resumed watch.
  mutating func apply(_ params: JSONView) throws(MalformedMessage) {
    let reader = MemberReader(object: params, place: "delta")
    let revision = try reader.revision("revision")
    guard revision > self.revision || reader.flag("reset") else { return }
    var changed = sections
    if reader.flag("reset") {
      changed = try reader.sections("sections")
    } else {
      let structure = try Change(sectionsOf: params)
      guard structure.sectionsFit(changed.count) else {
        throw MalformedMessage("delta: \"sections\" does not fit \(counted(changed.count, "section"))")
      }
      structure.applySections(to: &changed) { SectionSummary(name: $0.name, key: $0.key, count: 0) }
      let counts = try reader.counts("counts")
      guard counts.count == changed.count else {
        throw MalformedMessage(
          "delta: \"counts\" has \(counted(counts.count, "number")) for \(counted(changed.count, "section"))")
      }
      for (place, count) in counts.enumerated() { changed[place].count = count }
    }
    (sections, self.revision) = (changed, revision)
  }
}

extension Change {
  /// Whether the deleted and added sections are valid in a feed of `count` sections.
  package func sectionsFit(_ count: Int) -> Bool {
    guard sectionsDeleted.allSatisfy({ $0 < UInt32(clamping: count) }),
      zip(sectionsDeleted, sectionsDeleted.dropFirst()).allSatisfy(<)
    else { return false }
    let left = count - sectionsDeleted.count
    return sectionsAdded.enumerated().allSatisfy { $1.at <= UInt32(clamping: left + $0) }
  }
}

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

  init(sections: [SectionSummary]) { places = SnapshotPlaces(sections) }

  var emptySections: [Mirror.Section] {
    places.sections.map { Mirror.Section(name: $0.name, key: $0.key, rows: ChunkedList()) }
  }

  /// Throws unless `part` continues the previous one and the number of rows is right.
  func check(_ part: SnapshotPart) throws(FeedFault) {
    try places.check(at: part.at, count: part.elements.count, isLast: part.isLast)
  }

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
