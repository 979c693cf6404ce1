import FeedChange
import FeedJSON

/// The state of all feeds at one revision, which can be stored in parts while the feeds change.
///
/// Creating an image copies no rows: O(feeds + rows / 100). Invariant: a feed follows the feeds whose rows it shows,
/// and `$feeds`, whose rows follow from the definitions, is last.
public final class CatalogImage {
  public let revision: UInt64
  /// The time of the last step before the image.
  public let at: Instant
  public let feeds: [FeedImage]

  init(revision: UInt64, at: Instant, feeds: [FeedImage]) {
    (self.revision, self.at, self.feeds) = (revision, at, feeds)
  }
}

/// What an image stores of a bin besides its rows.
public struct StoredBin: Equatable, Sendable {
  public let revision: UInt64
  public let selection: [IndexPath]

  public init(revision: UInt64, selection: [IndexPath]) { (self.revision, self.selection) = (revision, selection) }
}

public final class FeedImage {
  public let name: String
  /// The current definition as JSON, with the current children and active segment, and the owner of the feed as `$owner`.
  public let definition: String
  /// The definition as a client last gave it, as JSON.
  public let given: String
  public let revision: UInt64
  public let selection: [IndexPath]
  public let bins: [StoredBin]
  /// The stored rows of each section; empty for a feed that shows rows of other feeds.
  public let sections: [any SectionSnapshot]
  let history: History?
  let binHistories: [History?]

  init(_ feed: Feed, sections: [any SectionSnapshot]) {
    name = feed.name
    let managed = sections.isEmpty ? nil : (feed.kind as? ManagedKind)?.kept
    definition = feed.kind is FeedListKind ? Self.list : Self.text(feed.definition, owner: feed.owner, managed)
    given = Self.text(feed.given)
    revision = feed.revision
    let bins = feed.kind.bins
    self.bins = bins.map { StoredBin(revision: $0.revision, selection: $0.selection) }
    (selection, self.sections, history) = (feed.selection, sections, feed.history)
    binHistories = bins.map(\.history)
  }

  /// The text in place of a definition of `$feeds`.
  static let list = "{\"feed\":\"\(FeedName.feeds)\",\"kind\":\"feeds\"}"

  private static func text(
    _ definition: FeedDefinition?, owner: UInt32? = nil, _ managed: ManagedState? = nil
  ) -> String {
    guard let definition else { return "" }
    var out = ByteBuffer()
    out.append(UInt8(ascii: "{"))
    definition.appendMembers(to: &out)
    if let owner { out.append(",\"$owner\":", integer: owner) }
    managed?.appendFacts(to: &out)
    out.append(UInt8(ascii: "}"))
    return String(decoding: out.bytes, as: UTF8.self)
  }
}

extension Catalog {
  /// Returns an image of the state after the last commit.
  public func makeImage() -> CatalogImage {
    let ordered = feeds.values.sorted { (graph.rank(of: $0.number), $0.name) < (graph.rank(of: $1.number), $1.name) }
    return CatalogImage(
      revision: revision, at: commit.moment,
      feeds: ordered.map { feed in
        FeedImage(feed, sections: storedRows(of: feed)?.sections.map { $0.makeSnapshot() } ?? [])
      } + [FeedImage(table.list, sections: [])])
  }

  /// The rows of a feed that images contain; nil if it shows others, or its rows are read again at each start.
  func storedRows(of feed: Feed) -> RowStore? {
    if let rows = feed.kind.rows { return rows }
    guard let rows = (feed.kind as? ManagedKind)?.kept else { return nil }
    return keepsManagedRows || rows.areStored ? rows : nil
  }
}

/// The recent changes of a feed, read from an image.
///
/// Invariant of a valid dump: the revisions of the records ascend and are greater than `base`.
public struct HistoryDump: Equatable, Sendable {
  public struct Record: Equatable, Sendable {
    /// The revision after the change.
    public let to: UInt64
    public let at: Instant
    public let change: Change
  }

  /// The revision before the first record.
  public let base: UInt64
  public let records: [Record]

  public init(base: UInt64, records: [Record]) { (self.base, self.records) = (base, records) }
}

extension History {
  /// Creates a history with the changes of a dump. Returns nil if the dump is not valid.
  convenience init?(_ dump: HistoryDump) {
    self.init(base: dump.base)
    var last = dump.base
    for record in dump.records {
      guard record.to > last else { return nil }
      var change = record.change
      append(&change, to: record.to, at: record.at)
      last = record.to
    }
  }
}

/// The recorded changes of a feed in an image, read in parts while the feed changes.
extension FeedImage {
  /// The feeds with a history: nil stands for the feed itself, an index for a bin of a collection.
  public var remembering: [Int?] {
    let bins = binHistories.indices.filter { binHistories[$0] != nil }
    return (history == nil ? [] : [nil]) + bins
  }

  /// The revision before the first recorded change.
  ///
  /// It can rise while the image is read, because old changes are discarded. Read it last, and ignore earlier changes.
  public func historyBase(of bin: Int?) -> UInt64? { kept(bin)?.base }

  /// Appends the changes after revision `last` up to `revision` to `out` as a row of ``HistoryRecords``: at least one, and at
  /// most `most` bytes. Returns the revision of the last record appended; nil if there is none.
  public func packChanges(
    of bin: Int?, after last: UInt64, upTo revision: UInt64, most: Int, into out: inout ByteBuffer
  ) -> UInt64? {
    kept(bin)?.pack(after: last, upTo: revision, most: most, into: &out)
  }

  private func kept(_ bin: Int?) -> History? {
    guard let bin else { return history }
    return binHistories.indices.contains(bin) ? binHistories[bin] : nil
  }
}

/// The recent changes of a feed as an image stores them, in rows of 32-bit words, all little-endian (Protocol/storage.md).
///
/// A row is a head and the words of ``WordRing`` with the stamps of ``History``, as they are in memory: an image copies them. The
/// head is two zeros, then the revision before the first record and its time in nanoseconds, two words each.
///
/// Images of schema 3 and before have rows of another form: the revision after each change, which is not zero, its time, two
/// words each, the number of words of the change, and these in the form of ``StoredChange``.
public enum HistoryRecords {
  static let headLength = 24
  /// The bytes of a record of the older form before its change.
  private static let plainHeadLength = 20

  static func appendHead(revision: UInt64, at time: UInt64, to out: inout ByteBuffer) {
    for number in [0, revision, time] as [UInt64] { out.append(littleEndian: number) }
  }

  /// Reads all records of a row; nil if it is not whole. The bytes may be anything.
  public static func read(_ bytes: UnsafeRawBufferPointer) -> [HistoryDump.Record]? {
    guard bytes.count >= headLength, number(in: bytes, at: 0) == 0 else { return readPlain(bytes) }
    guard bytes.count % 4 == 0 else { return nil }
    var words = WordRing()
    let count = (bytes.count - headLength) / 4
    words.reserve(count)
    for index in 0..<count { words.append(word(in: bytes, at: headLength + index * 4)) }
    return History.records(in: words, after: number(in: bytes, at: 8), at: number(in: bytes, at: 16))
  }

  private static func readPlain(_ bytes: UnsafeRawBufferPointer) -> [HistoryDump.Record]? {
    var records: [HistoryDump.Record] = []
    var offset = 0
    while offset < bytes.count {
      guard bytes.count - offset >= plainHeadLength else { return nil }
      let (to, at) = (number(in: bytes, at: offset), number(in: bytes, at: offset + 8))
      let count = Int(word(in: bytes, at: offset + 16))
      offset += plainHeadLength
      guard (bytes.count - offset) / 4 >= count else { return nil }
      let words = (0..<count).map { word(in: bytes, at: offset + $0 * 4) }
      offset += count * 4
      guard let change = StoredChange.change(words) else { return nil }
      records.append(.init(to: to, at: Instant(nanoseconds: at), change: change))
    }
    return records
  }

  private static func number(in bytes: UnsafeRawBufferPointer, at offset: Int) -> UInt64 {
    UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
  }

  private static func word(in bytes: UnsafeRawBufferPointer, at offset: Int) -> UInt32 {
    UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
  }
}

extension ByteBuffer {
  /// Appends a number for which there is room.
  @inline(__always)
  mutating func append(littleEndian number: some FixedWidthInteger) {
    let place = UnsafeMutableRawPointer(pointer) + count
    place.storeBytes(of: number.littleEndian, as: type(of: number.littleEndian))
    didWrite(MemoryLayout.size(ofValue: number))
  }
}

/// A change in plain form, as images of older schemas store it, as 32-bit words: the numbers of deleted, added and updated rows, of moves, and of
/// deleted and added sections; then these lists. A row is its section and its row; a move is the indexes of its two rows; an
/// added section is its index, the bytes of its name and each of these.
enum StoredChange {
  /// The bit of a move's second word for `Move.keepsElement`. A change never lists 2^31 rows.
  static let keepsElement: UInt32 = 1 << 31
  /// The bit of the length of a name for a section by value.
  static let namedByValue: UInt32 = 1 << 30

  static func move(_ deleted: UInt32, _ added: UInt32) -> Move {
    Move(deleted: deleted, added: added & ~keepsElement, keepsElement: added & keepsElement != 0)
  }

  /// Reads a change; nil if the words are not exactly one, by its counts.
  static func change(_ words: [UInt32]) -> Change? {
    guard isOneChange(words) else { return nil }
    var place = 6
    func next() -> UInt32 {
      place += 1
      return words[place - 1]
    }
    func paths(_ count: UInt32) -> [IndexPath] {
      (0..<count).map { _ in
        let section = next()
        return IndexPath(section: section, row: next())
      }
    }
    var change = Change()
    change.deleted = paths(words[0])
    change.added = paths(words[1])
    change.updated = paths(words[2])
    change.moves = (0..<words[3]).map { _ in
      let deleted = next()
      return move(deleted, next())
    }
    change.sectionsDeleted = (0..<words[4]).map { _ in next() }
    change.sectionsAdded = (0..<words[5]).map { _ in
      let (at, head) = (next(), next())
      let name = (0..<head & ~namedByValue).map { _ in UInt8(truncatingIfNeeded: next()) }
      return name.withUnsafeBytes { SectionAddition(at: at, name: $0, isByValue: head & namedByValue != 0) }
    }
    return change
  }

  private static func isOneChange(_ words: [UInt32]) -> Bool {
    guard words.count >= 6 else { return false }
    var place = 6 + words[0..<4].reduce(0) { $0 + Int($1) * 2 } + Int(words[4])
    for _ in 0..<Int(words[5]) {
      guard place + 1 < words.count else { return false }
      place += 2 + Int(words[place + 1] & ~namedByValue)
    }
    return place == words.count
  }
}
