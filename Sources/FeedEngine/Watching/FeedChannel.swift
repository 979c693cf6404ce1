import FeedJSON
import FeedModel

/// The watches of one feed and the deltas made for them in this turn.
///
/// Guarded by the engine's thread.
final class FeedChannel {
  let feed: Feed
  /// The watches that get every delta as it is made. A commit writes the delta once and looks at none of them; at the end
  /// of the turn each is given all that was made since it was given something last, as one piece.
  private(set) var inStep: [Watch] = []
  /// The others: not live, throttled, or of a revision of their own.
  private(set) var apart: [Watch] = []
  /// The frames of this turn's deltas, each made once for all watches that are in step.
  let buffer = TurnBuffer()
  /// Whether the channel is on the engine's list of those whose buffer must be given out and recycled.
  var isDirty = false
  /// The feed's name as JSON.
  let quotedName: [UInt8]

  init(_ feed: Feed) {
    self.feed = feed
    var quoted = ByteBuffer()
    quoted.appendJSONString(feed.name)
    quotedName = Array(quoted.bytes)
  }

  /// Whether rows may have a type, as found at a version of the feeds' structure.
  private var types: (version: UInt64, areThere: Bool)?

  /// Whether rows of the feed may have a type. To ask the feed anew is to ask all whose rows it shows.
  func hasTypes(asOf version: UInt64) -> Bool {
    if let types, types.version == version { return types.areThere }
    let areThere = feed.hasTypes
    types = (version, areThere)
    return areThere
  }

  /// All watches, in no order.
  var watches: [Watch] { inStep + apart }
  var watchCount: Int { inStep.count + apart.count }

  func add(_ watch: Watch) {
    watch.place = apart.count
    apart.append(watch)
  }

  func remove(_ watch: Watch) {
    if watch.isInStep { Self.take(watch, from: &inStep) } else { Self.take(watch, from: &apart) }
    watch.isInStep = false
  }

  /// The watch is up to date: it gets what is made from here on.
  func join(_ watch: Watch) {
    Self.take(watch, from: &apart)
    watch.isInStep = true
    watch.given = buffer.bytes.count
    watch.place = inStep.count
    inStep.append(watch)
  }

  /// The watch goes on alone.
  func leave(_ watch: Watch) {
    Self.take(watch, from: &inStep)
    watch.isInStep = false
    add(watch)
  }

  /// Everything was given out and written: the buffer is used again from its beginning.
  func recycle() {
    isDirty = false
    buffer.recycle()
    for watch in inStep { watch.given = 0 }
  }

  /// Takes a watch out of a list by putting the last one in its place. O(1).
  private static func take(_ watch: Watch, from list: inout [Watch]) {
    let last = list.removeLast()
    if last === watch { return }
    last.place = watch.place
    list[watch.place] = last
  }
}
