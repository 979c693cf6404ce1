import FeedChange
import FeedWire

/// A copy of a feed, kept up to date by the snapshots, deltas and bookmarks of a watch.
///
/// A value without a connection. Each `apply` applies a whole message, or throws a ``FeedFault`` and leaves the mirror
/// unchanged. After a fault, start over with a new watch. Invariant: the sections are those of one revision of the
/// feed, because the rows of a snapshot become visible with its last part.
///
///     var mirror = Mirror(start)  // the result of `watch`
///     try mirror.apply(part)  // each part of the snapshot
///     try mirror.apply(delta)  // then each delta
///     let text = mirror[0, 3]?.element  // JSON text
public struct Mirror: Sendable {
  /// A section of the feed, in flattened order.
  public struct Section: Sendable {
    public var name: String
    /// The value of a section by value, as JSON text; nil for other sections.
    public var key: [UInt8]?
    public var rows: ChunkedList<Row>

    public init(name: String, key: [UInt8]? = nil, rows: ChunkedList<Row>) {
      (self.name, self.key, self.rows) = (name, key, rows)
    }
  }

  public let feed: String
  /// The rows at ``WatchProgress/revision``; while a snapshot is being received, those of the last complete state.
  public private(set) var sections: [Section] = []
  /// The selected rows as of the last `selection`. The daemon sends another if a change moves them.
  public private(set) var selected: [IndexPath] = []
  /// The revision of the mirror, and the messages that may follow.
  public private(set) var progress: WatchProgress
  private var incoming: IncomingSnapshot

  /// Creates an empty mirror for a watch that was not resumed.
  /// - Parameter initial: whether a snapshot was requested; without one the mirror is correct only for an empty feed.
  public init(_ start: WatchStart, initial: Bool = true) {
    feed = start.feed
    progress = WatchProgress(start, since: nil, initial: initial)
    incoming = IncomingSnapshot(sections: start.sections)
    if !initial { sections = incoming.emptySections }
  }

  /// Creates a mirror of the state that an earlier watch had at `position`, to ``restart(_:)`` with a watch that was requested
  /// from there.
  public init(feed: String, position: FeedPosition, sections: [Section]) {
    (self.feed, self.sections) = (feed, sections)
    let start = WatchStart(feed: feed, epoch: position.epoch, revision: position.revision, resumed: true, sections: [])
    progress = WatchProgress(start, since: position, initial: false)
    incoming = IncomingSnapshot(sections: [])
  }

  /// Continues with another watch of the same feed. It must have been requested with `since` at the mirror's position,
  /// and with a snapshot in case it cannot resume. Nothing is selected until a `selection` arrives: none does if nothing is.
  public mutating func restart(_ start: WatchStart) {
    progress.restart(start, initial: true)
    selected = []
    incoming = IncomingSnapshot(sections: start.sections)
  }

  /// Whether the mirror has the rows of a complete state.
  public var isShown: Bool { progress.position != nil }
  /// The number of rows. O(sections).
  public var count: Int { sections.reduce(0) { $0 + $1.rows.count } }

  /// The row at `path`; nil if there is none.
  public subscript(path: IndexPath) -> Row? {
    guard Int(path.section) < sections.count, Int(path.row) < sections[Int(path.section)].rows.count else { return nil }
    return sections[Int(path.section)].rows[Int(path.row)]
  }
}

extension Mirror {
  /// Applies a part of a snapshot.
  /// - Returns: whether the snapshot is complete.
  @discardableResult
  public mutating func apply(_ part: SnapshotPart) throws(FeedFault) -> Bool {
    guard part.feed == feed else { throw .foreign(part.feed) }
    var next = progress
    try next.record(snapshot: part.revision, isReset: part.resetSections != nil, isLast: part.isLast)
    if let sections = part.resetSections {
      let fresh = IncomingSnapshot(sections: sections)
      try fresh.check(part)
      incoming = fresh
    } else {
      try incoming.check(part)
    }
    progress = next
    incoming.add(part)
    guard part.isLast else { return false }
    sections = incoming.sections
    incoming = IncomingSnapshot(sections: [])
    return true
  }

  /// Applies a delta. O(size of the delta), plus O(rows / 256) for each changed section; see ``ChunkedList``.
  public mutating func apply(_ delta: Delta) throws(FeedFault) {
    guard delta.feed == feed else { throw .foreign(delta.feed) }
    var next = progress
    try next.record(deltaFrom: delta.from, to: delta.revision)
    do throws(ChangeError) {
      try delta.change.validate(rowCounts: sections.map(\.rows.count))
    } catch {
      throw .misfit(error, revision: delta.revision)
    }
    let expected = delta.change.added.count + delta.change.updated.count
    guard delta.elements.count == expected else {
      throw .misfit(.elementCount(expected: expected, found: delta.elements.count), revision: delta.revision)
    }
    progress = next
    carryOut(delta)
  }

  public mutating func apply(_ bookmark: Bookmark) throws(FeedFault) {
    guard bookmark.feed == feed else { throw .foreign(bookmark.feed) }
    try progress.record(bookmark)
  }

  public mutating func apply(_ selection: Selection) throws(FeedFault) {
    guard selection.feed == feed else { throw .foreign(selection.feed) }
    selected = selection.selected
  }

  /// Applies a validated delta: deletions, sections, additions, updates.
  private mutating func carryOut(_ delta: Delta) {
    let change = delta.change
    for run in change.deleted.runsOfSections() {
      sections[run.section].rows.remove(change.deleted[run.places].lazy.map { Int($0.row) })
    }
    change.applySections(to: &sections) { Section(name: $0.name, key: $0.key, rows: ChunkedList()) }
    let rows = rowsOf(delta)
    for run in change.added.runsOfSections() {
      sections[run.section].rows.insert(rows[run.places], at: change.added[run.places].lazy.map { Int($0.row) })
    }
    let updated = rows[change.added.count...]
    for run in change.updated.runsOfSections() {
      let places = run.places.lowerBound + change.added.count..<run.places.upperBound + change.added.count
      sections[run.section].rows.replace(change.updated[run.places].lazy.map { Int($0.row) }, with: updated[places])
    }
  }

  /// The rows of a delta: the added ones, then the updated ones.
  private func rowsOf(_ delta: Delta) -> [Row] {
    let added = delta.change.added.count
    var rows = delta.elements.indices.map { place in
      Row(
        element: delta.elements[place], type: delta.types?[place], origin: place < added ? .added : .updated,
        revision: delta.revision)
    }
    for move in delta.change.moves { rows[Int(move.added)].origin = .moved }
    return rows
  }
}

extension Mirror {
  /// The number of rows in each section, as in the answer to `verify`. O(sections).
  public var counts: [Int] { sections.map(\.rows.count) }

  /// The digest, as in the answer to `verify` for the same rows: the CRC-32 of the compact JSON `[[elements of section
  /// 0],…]`, as eight hexadecimal digits. O(bytes), about two gigabytes a second.
  public var digest: String {
    var crc = CRC32()
    crc.update(UInt8(ascii: "["))
    for (index, section) in sections.enumerated() {
      if index > 0 { crc.update(UInt8(ascii: ",")) }
      crc.update(UInt8(ascii: "["))
      var isFirst = true
      for row in section.rows {
        if !isFirst { crc.update(UInt8(ascii: ",")) }
        isFirst = false
        row.element.withUnsafeBytes { crc.update($0) }
      }
      crc.update(UInt8(ascii: "]"))
    }
    crc.update(UInt8(ascii: "]"))
    return crc.hex8
  }
}

public struct Row: Equatable, Sendable {
  /// The origin of a row's current content and place.
  public enum Origin: UInt8, Sendable {
    /// The row came with a snapshot.
    case snapshot
    /// A delta added the row.
    case added
    /// A delta moved the row here.
    case moved
    /// A delta replaced the element.
    case updated
  }

  /// The element's compact JSON text, UTF-8, as the daemon sent it.
  public var element: [UInt8]
  /// The row's type; nil if it has none.
  public var type: String?
  /// The origin of the row's current content and place.
  public var origin: Origin
  /// The revision of the change that is named by `origin`.
  public var revision: UInt64

  public init(element: [UInt8], type: String? = nil, origin: Origin = .snapshot, revision: UInt64 = 0) {
    (self.element, self.type, self.origin, self.revision) = (element, type, origin, revision)
  }
}
