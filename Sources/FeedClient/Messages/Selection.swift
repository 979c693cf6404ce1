import FeedChange
import FeedJSON

/// A `selection` notification: which rows of a feed are selected now, by whoever did it.
public struct Selection: Equatable, Sendable {
  public var feed: String
  /// The revision whose coordinates the paths are in.
  public var revision: UInt64
  /// Ascending.
  public var selected: [IndexPath]

  public init(feed: String, revision: UInt64, selected: [IndexPath]) {
    self.feed = feed
    self.revision = revision
    self.selected = selected
  }

  /// Reads the `params` of the notification.
  public init(_ params: JSONView) throws(MalformedMessage) {
    let reader = MemberReader(object: params, place: "selection")
    feed = try reader.string("feed")
    revision = try reader.revision("revision")
    selected = try reader.paths("selected")
  }
}
