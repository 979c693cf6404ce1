import FeedJSON
import FeedModel

/// The watches of one feed, and the deltas made for them in this turn.
///
/// Invariant: a watch in one of the two lists is live, and its seat and place say where it is. Guarded by the engine's thread.
final class FeedChannel {
  let feed: Feed
  /// The watches that share every delta. A commit writes the delta once and looks at none of them; at the end of the turn each
  /// is given, as one piece, all that was made since it was given something last.
  private(set) var inStep: [Watch] = []
  /// The live watches that are throttled or at a revision of their own.
  private(set) var solo: [Watch] = []
  /// All watches, those that are not live included.
  private(set) var watchCount = 0
  /// The frames of this turn's deltas, each made once for all watches in step.
  let buffer = TurnBuffer()
  /// Whether the channel is listed among those whose buffer must be given out and recycled.
  var isDirty = false
  /// The feed's name as JSON.
  let quotedName: [UInt8]
  /// Whether the watches are told counts of rows instead of the rows.
  let isCounting: Bool
  /// The channel of the same feed whose watches are told counts; nil until there is one. Kept by the channel of rows.
  private(set) var counting: FeedChannel?
  /// Incremented when other rows are selected.
  private(set) var selectionVersion: UInt64 = 0
  /// Whether rows of the feed may have a type, at a version of the feeds' structure.
  private var types: (version: UInt64, areThere: Bool)?

  init(_ feed: Feed, isCounting: Bool = false) {
    self.feed = feed
    self.isCounting = isCounting
    var quoted = ByteBuffer()
    quoted.appendJSONString(feed.name)
    quotedName = Array(quoted.bytes)
  }

  /// Whether rows of the feed may have a type. The answer is kept: the feed must ask every feed whose rows it shows.
  func hasTypes(asOf version: UInt64) -> Bool {
    if let types, types.version == version { return types.areThere }
    let areThere = feed.hasTypes
    types = (version, areThere)
    return areThere
  }

  /// The channel of the same feed whose watches are told counts; made at the first call.
  func makeCounting() -> FeedChannel {
    precondition(!isCounting, "the channel of rows keeps the channel of counts")
    if let counting { return counting }
    let made = FeedChannel(feed, isCounting: true)
    counting = made
    return made
  }

  /// All watches of the feed, those that are told counts included.
  var totalWatchCount: Int { watchCount + (counting?.watchCount ?? 0) }

  /// The live watches. O(live watches).
  var live: [Watch] { inStep + solo }

  func selectionDidChange() { selectionVersion &+= 1 }

  /// Counts a watch that begins.
  func didBegin() { watchCount += 1 }

  /// Counts a watch that has ended.
  func didEnd() {
    precondition(watchCount > 0, "a watch ends once")
    watchCount -= 1
  }

  /// Adds a live watch to those that are told one by one.
  func addSolo(_ watch: Watch) {
    precondition(watch.seat == .standing && watch.isLive, "a watch is in one list")
    watch.seat = .solo
    watch.place = solo.count
    solo.append(watch)
  }

  /// Lets a watch that has the feed's revision share the deltas made from now on.
  func join(_ watch: Watch) {
    precondition(watch.seat == .solo, "only a live watch joins the others")
    Self.take(watch, from: &solo)
    watch.seat = .inStep
    watch.given = buffer.bytes.count
    watch.place = inStep.count
    inStep.append(watch)
  }

  /// Takes a live watch out of its list. O(1).
  func remove(_ watch: Watch) {
    switch watch.seat {
    case .inStep: Self.take(watch, from: &inStep)
    case .solo: Self.take(watch, from: &solo)
    case .ready, .throttled, .blocked, .standing, .ended: preconditionFailure("the watch is in no list of its channel")
    }
    watch.seat = .standing
  }

  /// Uses the buffer again from its beginning: everything in it was given out and written.
  func recycle() {
    isDirty = false
    buffer.recycle()
    for watch in inStep { watch.given = 0 }
  }

  /// Takes a watch out of a list; the last one takes its place.
  private static func take(_ watch: Watch, from list: inout [Watch]) {
    let last = list.removeLast()
    if last === watch { return }
    last.place = watch.place
    list[watch.place] = last
  }

  /// Stops a debug build if a watch is not where it says. O(live watches).
  func checkInvariants() {
    #if DEBUG
      for (place, watch) in inStep.enumerated() {
        assert(watch.seat == .inStep && watch.place == place && watch.isLive)
      }
      for (place, watch) in solo.enumerated() { assert(watch.seat == .solo && watch.place == place && watch.isLive) }
      assert(watchCount >= inStep.count + solo.count)
    #endif
  }
}
