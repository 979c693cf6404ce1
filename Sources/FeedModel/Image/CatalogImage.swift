import FeedJSON

/// Everything the daemon must keep, as of one revision, to be written in parts while the feeds go on changing.
///
/// Making one copies no rows: O(feeds + rows / 100). Feeds come in an order in which each follows those it shows.
public final class CatalogImage {
  public let revision: UInt64
  public let feeds: [FeedImage]

  init(revision: UInt64, feeds: [FeedImage]) {
    self.revision = revision
    self.feeds = feeds
  }
}

/// One feed of an image.
public final class FeedImage {
  public let name: String
  /// The definition as it stands, children and active segment included, as JSON.
  public let definition: String
  /// The definition as it was given last, as JSON.
  public let given: String
  public let revision: UInt64
  /// The revisions of a collection's bins, in order.
  public let binRevisions: [UInt64]
  public let selection: [IndexPath]
  /// The stored rows of each section; empty for a feed that shows the rows of others.
  public let sections: [SectionSnapshot]
  private let elements: ElementTable?
  private let history: History?
  private let binHistories: [History?]

  init(_ feed: Feed, sections: [SectionSnapshot], elements: ElementTable?) {
    name = feed.name
    definition = Self.text(feed.definition)
    given = Self.text(feed.given)
    revision = feed.revision
    let bins = (feed as? CollectionFeed)?.binFeeds ?? []
    binRevisions = bins.map(\.revision)
    selection = feed.selection
    self.sections = sections
    self.elements = elements
    history = feed.history
    binHistories = bins.map(\.history)
  }

  /// When the element behind a row of this image last became different. Good only while replay of what came after the
  /// image follows: the answer may already know of it.
  public func changedAt(_ row: Row) -> Instant {
    elements?.records[Int(row.element.owner)].changedAt ?? Instant(nanoseconds: 0)
  }

  /// The recent changes up to the image's revision: of the feed itself (`bin` nil) or of one bin; nil when none are kept.
  public func history(bin: Int? = nil, upTo revision: UInt64) -> HistoryDump? {
    let kept = bin.map { binHistories.indices.contains($0) ? binHistories[$0] : nil } ?? history
    return kept?.dump(upTo: revision)
  }

  private static func text(_ definition: FeedDefinition?) -> String {
    guard let definition else { return "" }
    var out = ByteBuffer()
    out.append(UInt8(ascii: "{"))
    definition.appendMembers(to: &out)
    out.append(UInt8(ascii: "}"))
    return String(decoding: out.bytes, as: UTF8.self)
  }
}

extension Catalog {
  /// An image of everything as of the last commit.
  public func makeImage() -> CatalogImage {
    let ordered = feeds.values.sorted { ($0.rank, $0.name) < ($1.rank, $1.name) }
    return CatalogImage(
      revision: revision,
      feeds: ordered.map { feed in
        let sections = feed.rowStore?.sections.map { $0.makeSnapshot() }
        return FeedImage(feed, sections: sections ?? [], elements: feed.rowStore?.elements)
      })
  }
}
