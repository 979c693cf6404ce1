import FeedJSON
import FeedModel

/// The watches of one feed and the deltas made for them in this turn.
///
/// Guarded by the engine's thread.
final class FeedChannel {
  let feed: Feed
  var watches: [Watch] = []
  /// The frames of this turn's deltas, each made once for all watches that are up to date.
  let buffer = TurnBuffer()
  /// Whether the channel is on the engine's list of those whose buffer must be recycled.
  var isDirty = false
  /// The feed's name as JSON.
  let quotedName: [UInt8]

  init(_ feed: Feed) {
    self.feed = feed
    var quoted = ByteBuffer()
    quoted.appendJSONString(feed.name)
    quotedName = Array(quoted.bytes)
  }
}
