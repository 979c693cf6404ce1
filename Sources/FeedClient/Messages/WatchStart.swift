import FeedJSON

/// The result of `watch` (protocol, section 7).
public struct WatchStart: Equatable, Sendable {
  public var feed: String
  public var epoch: String
  public var revision: UInt64
  /// Whether the watch goes on from the `since` that was asked for; otherwise a snapshot follows, unless none was
  /// wanted.
  public var resumed: Bool
  public var sections: [SectionSummary]

  public init(feed: String, epoch: String, revision: UInt64, resumed: Bool, sections: [SectionSummary]) {
    self.feed = feed
    self.epoch = epoch
    self.revision = revision
    self.resumed = resumed
    self.sections = sections
  }

  /// Reads the `result` of a response.
  public init(_ result: JSONView) throws(MalformedMessage) {
    let reader = MemberReader(object: result, place: "watch")
    feed = try reader.string("feed")
    epoch = try reader.string("epoch")
    revision = try reader.revision("revision")
    resumed = reader.flag("resumed")
    sections = try reader.sections("sections")
  }
}
