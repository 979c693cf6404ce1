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
    self.revision = revision
    self.at = at
    self.feeds = feeds
  }
}

/// The state of one feed in an image.
public final class FeedImage {
  public let name: String
  /// The current definition as JSON, with the current children and active segment, and the owner of the feed as `$owner`.
  public let definition: String
  /// The definition as a client last gave it, as JSON.
  public let given: String
  public let revision: UInt64
  /// The revisions of a collection's bins, in order.
  public let binRevisions: [UInt64]
  public let selection: [IndexPath]
  /// The stored rows of each section; empty for a feed that shows rows of other feeds.
  public let sections: [any SectionSnapshot]
  let history: History?
  let binHistories: [History?]

  init(_ feed: Feed, sections: [any SectionSnapshot]) {
    name = feed.name
    definition = feed.kind is FeedListKind ? Self.list : Self.text(feed.definition, owner: feed.owner)
    given = Self.text(feed.given)
    revision = feed.revision
    let bins = feed.kind.bins
    binRevisions = bins.map(\.revision)
    selection = feed.selection
    self.sections = sections
    history = feed.history
    binHistories = bins.map(\.history)
  }

  /// The text in place of a definition of `$feeds`.
  static let list = "{\"feed\":\"\(FeedName.feeds)\",\"kind\":\"feeds\"}"

  private static func text(_ definition: FeedDefinition?, owner: UInt32? = nil) -> String {
    guard let definition else { return "" }
    var out = ByteBuffer()
    out.append(UInt8(ascii: "{"))
    definition.appendMembers(to: &out)
    if let owner {
      out.append(",\"$owner\":")
      out.append(integer: owner)
    }
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
        FeedImage(feed, sections: feed.kind.rows?.sections.map { $0.makeSnapshot() } ?? [])
      } + [FeedImage(table.list, sections: [])])
  }
}
