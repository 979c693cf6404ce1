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

  /// The rows of a feed that images contain; nil for a feed that shows rows of other feeds, and for one whose rows are read
  /// again at each start.
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

  public init(base: UInt64, records: [Record]) {
    (self.base, self.records) = (base, records)
  }
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
  /// It can rise while the image is read, because old changes are discarded. Read it after the last part, and ignore
  /// the changes up to it.
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
