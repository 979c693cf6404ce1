import FeedChange

/// One row of a section: an element and its type in this section. Valid until the next mutation.
@frozen public struct Row {
  public let element: ElementText
  /// The row's type as a JSON string, quotes included; empty if it has none.
  public let type: UnsafeRawBufferPointer

  @inlinable public init(element: ElementText, type: UnsafeRawBufferPointer) {
    self.element = element
    self.type = type
  }

  /// A row with the type of its element.
  @inline(__always)
  init(_ element: ElementText) { self.init(element: element, type: element.type) }

  /// The element as compact JSON.
  @inlinable public var text: UnsafeRawBufferPointer { element.text }
}

/// A named, ordered list of rows: one bin, or all rows of a feed with one section. Only the engine's thread may use it.
public protocol FeedSection: AnyObject {
  /// The name: that of the feed, `collection/bin` or `feed/value`.
  var name: String { get }
  /// Whether it is a section by value, whose name tells the value.
  var isByValue: Bool { get }
  var count: Int { get }
  /// The row at an index in `0..<count`. O(log n).
  func row(at index: Int) -> Row
  /// The element of the row at an index in `0..<count`. O(log n).
  func element(at index: Int) -> ElementText
  /// The type of the row at an index in `0..<count`. O(log n).
  func type(at index: Int) -> UnsafeRawBufferPointer
  /// Calls `body` with the rows of a range in order. O(log n + rows).
  func forEach(in range: Range<Int>, _ body: (Row) -> Void)
  /// Returns a snapshot of the rows of a range, which can be read while the feed changes. O(log n + rows / 100).
  func makeSnapshot(of range: Range<Int>) -> any SectionSnapshot
}

extension FeedSection {
  public var isByValue: Bool { false }
  func makeSnapshot() -> any SectionSnapshot { makeSnapshot(of: 0..<count) }
}

/// Rows of one section when the snapshot was made, read once in order.
public protocol SectionSnapshot: AnyObject {
  var count: Int { get }
  /// Calls `body` with up to `max` more rows, each valid during its call, and with none after the texts of these have `bytes` bytes.
  /// Returns the number of rows; 0 at the end.
  func next(max: Int, bytes: Int, _ body: (Row) -> Void) -> Int
  /// Passes over up to `max` more rows. Returns the number of rows; 0 at the end. Costs less than reading them.
  func skip(max: Int) -> Int
  /// Charges the memory of the snapshot, also what it captures later. Called once, before anything is read.
  func charge(to memory: SnapshotMemory)
}

extension SectionSnapshot {
  /// Calls `body` with up to `max` more rows, each valid during its call. Returns the number of rows; 0 at the end.
  public func next(max: Int, _ body: (Row) -> Void) -> Int { next(max: max, bytes: .max, body) }
}

/// The sections of many feeds, listed one after the other.
///
/// Feeds show each other's sections. Short lists are kept, so that listing all feeds takes time in proportion to the feeds and
/// the listed sections, however deep feeds stand in each other. Valid until the next mutation.
public struct SectionLists {
  /// Sections of the longest list that is kept. The time to find the sections of longer lists is in proportion to them.
  private static let longestKept = 64

  private var kept: [FeedNumber: [any FeedSection]] = [:]

  public init() {}

  /// Whether the list of a feed is short enough to be kept.
  public func keeps(_ feed: Feed) -> Bool { feed.sectionCount <= Self.longestKept }

  public mutating func sections(of feed: Feed) -> [any FeedSection] {
    guard let provider = feed.kind as? ProviderKind, !feed.isGone else { return feed.sections }
    if let known = kept[feed.number] { return known }
    if feed.sectionCount > Self.longestKept { return feed.sections }
    let list = provider.shown.flatMap { sections(of: $0) }
    kept[feed.number] = list
    return list
  }
}

/// Rows of consecutive sections when the snapshot was made.
public struct SectionsSnapshot {
  /// The rows of all these sections, one section after another.
  let rows: any SectionSnapshot
  let counts: [UInt32]

  /// - Precondition: the sum of the counts is that of `rows`.
  init(_ rows: any SectionSnapshot, counts: [UInt32]) { (self.rows, self.counts) = (rows, counts) }

  init(_ rows: any SectionSnapshot) { self.init(rows, counts: [UInt32(rows.count)]) }
}

/// Rows of a feed at one revision, read in parts while the feed changes.
///
/// Making a snapshot copies no rows. Before a later change replaces a row that was not read yet, the snapshot captures
/// it. The sections can be read one after another, or as one section.
///
/// Invariant: the current section has rows that were not read, unless all rows of all sections were.
public final class FeedSnapshot: SectionSnapshot {
  public let revision: UInt64
  public let count: Int
  public let sectionCounts: [UInt32]
  /// The index of the section of the next row; the number of sections at the end.
  public private(set) var section = 0
  /// The rows of sections not read to their end, the next row last, each with the index after its last section.
  private var sources: [(rows: any SectionSnapshot, end: Int)] = []
  /// The number of rows of the current section that were read.
  private var row = 0
  /// What is charged for the lists of the snapshot.
  private var charge: SnapshotMemory.Share?

  init(_ parts: [SectionsSnapshot], revision: UInt64) {
    self.revision = revision
    count = parts.reduce(0) { $0 + $1.rows.count }
    sectionCounts = parts.count == 1 ? parts[0].counts : parts.flatMap(\.counts)
    var start = 0
    for part in parts {
      start += part.counts.count
      sources.append((part.rows, start))
    }
    sources.reverse()
    skipFinishedSections()
  }

  /// The bytes of the snapshot and its reader, besides those of its sections.
  private var ownBytes: Int { 1024 + sectionCounts.count * MemoryLayout<UInt32>.stride }

  public func charge(to memory: SnapshotMemory) {
    precondition(charge == nil, "a snapshot is charged once")
    charge = memory.hold(ownBytes)
    for source in sources { source.rows.charge(to: memory) }
  }

  public var isFinished: Bool { section == sectionCounts.count }

  /// The place of the next row; `[0,0]` at the end.
  public var place: IndexPath {
    isFinished ? IndexPath(section: 0, row: 0) : IndexPath(section: UInt32(section), row: UInt32(row))
  }

  /// The place of the row that is `rows` rows after the one at `place`. O(sections between them).
  /// - Precondition: both rows exist.
  public func place(_ rows: Int, after place: IndexPath) -> IndexPath {
    var (section, row) = (Int(place.section), Int(place.row) + rows)
    while row >= sectionCounts[section] {
      row -= Int(sectionCounts[section])
      section += 1
    }
    return IndexPath(section: UInt32(section), row: UInt32(row))
  }

  /// Calls `body` with up to `max` more rows of one section, and with none after the texts of these have `bytes` bytes. Returns the
  /// number of rows; 0 at the end.
  public func next(max: Int, bytes: Int, _ body: (Row) -> Void) -> Int {
    next(max: max, bytes: bytes, acrossSections: false, body)
  }

  /// Calls `body` with up to `max` more rows, and with none after the texts of these have `bytes` bytes. Returns the number of rows; 0
  /// at the end.
  /// - Parameter acrossSections: whether the rows may be of several sections. Otherwise they are of one.
  public func next(max: Int, bytes: Int, acrossSections: Bool, _ body: (Row) -> Void) -> Int {
    guard let source = sources.last else { return 0 }
    return didRead(source.rows.next(max: acrossSections ? max : min(max, rowsLeft), bytes: bytes, body))
  }

  /// Passes over up to `max` more rows of one section. Returns the number of rows; 0 at the end.
  public func skip(max: Int) -> Int {
    guard let source = sources.last else { return 0 }
    return didRead(source.rows.skip(max: min(max, rowsLeft)))
  }

  /// Passes over the rows before a path.
  /// - Precondition: the path is that of the next row or of one after it.
  /// - Parameter step: called after each section and each thousand rows.
  public func skip(to path: IndexPath, step: () -> Void) {
    while section < path.section || section == path.section && row < path.row {
      let rows = section < path.section ? rowsLeft : Int(path.row) - row
      guard skip(max: min(rows, Self.rowsPerStep)) > 0 else { preconditionFailure("there is no row at the path") }
      step()
    }
    precondition(section == path.section && row == path.row, "the path was passed")
  }

  private static let rowsPerStep = 1024

  /// The number of rows of the current section that were not read.
  private var rowsLeft: Int { Int(sectionCounts[section]) - row }

  private func didRead(_ read: Int) -> Int {
    row += read
    if row >= sectionCounts[section] { skipFinishedSections() }
    return read
  }

  private func skipFinishedSections() {
    while section < sectionCounts.count, row >= sectionCounts[section] {
      row -= Int(sectionCounts[section])
      section += 1
    }
    while let source = sources.last, source.end <= section { sources.removeLast() }
  }
}

extension Range<Int> {
  func shifted(by offset: Int) -> Range<Int> { lowerBound + offset..<upperBound + offset }
}

/// The memory of the snapshots of one owner, in bytes.
///
/// A snapshot copies no rows when it is made. Before a change of a row that was not read yet, it captures the row, and keeps
/// the former version of the element. So its memory grows while feeds change.
///
///     let all = SnapshotMemory()
///     let memory = SnapshotMemory(partOf: all)
///     let snapshot = feed.makeSnapshot(chargedTo: memory)
///
/// A version that several snapshots keep is charged for each. Only the engine's thread may use it.
public final class SnapshotMemory {
  public private(set) var bytes = 0
  /// All bytes that were ever charged. Their growth is the work of making snapshots.
  public private(set) var charged = 0
  private let total: SnapshotMemory?

  public init(partOf total: SnapshotMemory? = nil) { self.total = total }

  /// Charges so many bytes until the result is released.
  public func hold(_ count: Int) -> Share { Share(count, of: self) }

  /// Bytes that are charged as long as the share exists.
  public final class Share {
    private let memory: SnapshotMemory
    private let bytes: Int

    fileprivate init(_ bytes: Int, of memory: SnapshotMemory) {
      (self.memory, self.bytes) = (memory, bytes)
      memory.add(bytes)
    }

    deinit { memory.add(-bytes) }
  }

  func add(_ count: Int) {
    bytes += count
    if count > 0 { charged &+= count }
    assert(bytes >= 0, "more was released than charged")
    total?.add(count)
  }
}

/// The memory of rows that their feed has given up and only snapshots keep: the feed was undefined, redefined or changed as a
/// whole while they were read (`Protocol/limits.md`, "What a user holds").
///
/// One of the snapshots is charged for all of it; when that one ends, another, as long as the memory is kept.
///
/// Invariant: `share` is charged to the first holder that is left.
final class AbandonedRows {
  private let bytes: Int
  /// What is charged for each snapshot; nil when the snapshot has ended.
  private var holders: [SnapshotMemory?] = []
  /// The index of the holder that is charged.
  private var payer = 0
  private var share: SnapshotMemory.Share?

  private init(_ bytes: Int) { self.bytes = bytes }

  /// Charges the unfinished snapshots of trees for `bytes` and the memory of their trees. Their feed gives up the trees now, and
  /// what the bytes stand for. Snapshots that nobody is charged for do not count. O(trees + snapshots).
  static func charge(_ bytes: Int, for trees: some Sequence<PositionTree>) {
    let kept = trees.filter(\.hasChargedSnapshots)
    if kept.isEmpty { return }
    let rows = AbandonedRows(kept.reduce(bytes) { $0 + $1.byteCount })
    for tree in kept { tree.abandon(rows) }
  }

  /// Adds a snapshot that is charged to `memory`. Returns its number for ``leave(_:)``.
  func add(_ memory: SnapshotMemory) -> Int {
    holders.append(memory)
    if share == nil { share = memory.hold(bytes) }
    return holders.count - 1
  }

  /// A snapshot has ended. O(1), amortized over the holders.
  func leave(_ holder: Int) {
    holders[holder] = nil
    if holder != payer { return }
    share = nil
    while payer < holders.count {
      if let memory = holders[payer] { return share = memory.hold(bytes) }
      payer += 1
    }
  }
}
