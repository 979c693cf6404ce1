import FeedChange
import FeedJSON

/// Everything the daemon must keep, as of one revision, to be written in parts while the feeds go on changing.
///
/// Making one copies no rows: O(feeds + rows / 100). Feeds come in an order in which each follows those it shows.
public final class CatalogImage {
  public let revision: UInt64
  /// The moment of the last step before the image.
  public let at: Instant
  public let feeds: [FeedImage]

  init(revision: UInt64, at: Instant, feeds: [FeedImage]) {
    self.revision = revision
    self.at = at
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
  let history: History?
  let binHistories: [History?]

  init(_ feed: Feed, sections: [SectionSnapshot]) {
    name = feed.name
    definition = Self.text(feed.definition)
    given = Self.text(feed.given)
    revision = feed.revision
    let bins = (feed as? CollectionFeed)?.binFeeds ?? []
    binRevisions = bins.map(\.revision)
    selection = feed.selection
    self.sections = sections
    history = feed.history
    binHistories = bins.map(\.history)
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
      revision: revision, at: now,
      feeds: ordered.map { feed in
        FeedImage(feed, sections: feed.rowStore?.sections.map { $0.makeSnapshot() } ?? [])
      })
  }
}
