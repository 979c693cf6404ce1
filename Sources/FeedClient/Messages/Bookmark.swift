import FeedJSON

/// A `bookmark` notification: the feed has not changed since `revision`, and the daemon is at `current`.
public struct Bookmark: Equatable, Sendable {
  public var feed: String
  public var epoch: String
  public var revision: UInt64
  /// A watch may go on from here just as well.
  public var current: UInt64

  public init(feed: String, epoch: String, revision: UInt64, current: UInt64) {
    self.feed = feed
    self.epoch = epoch
    self.revision = revision
    self.current = current
  }

  /// Reads the `params` of the notification.
  public init(_ params: JSONView) throws(MalformedMessage) {
    let reader = MemberReader(object: params, place: "bookmark")
    feed = try reader.string("feed")
    epoch = try reader.string("epoch")
    revision = try reader.revision("revision")
    current = try reader.revision("current")
  }
}
