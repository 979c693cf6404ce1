import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// The watches of one feed, and the deltas that this turn made for them.
///
/// Invariant: a watch in one of the two lists is live, and its seat and place give its position. Only the engine's
/// thread may use it.
final class FeedChannel {
  /// The feed; what remains of it once it is gone.
  private(set) var feed: Feed
  /// The watches that share every delta. A commit encodes the delta once without visiting these watches. At the end of
  /// the turn each is given, as one piece, all deltas since it was last given some.
  private(set) var inStep: [Watch] = []
  /// The live watches that are throttled or at a revision of their own.
  private(set) var solo: [Watch] = []
  /// The number of all watches, including those that are not live.
  private(set) var watchCount = 0
  /// The frames of this turn's deltas, each encoded once for all watches in step.
  let buffer = TurnBuffer(isShared: true)
  /// The revision to which the last delta of the buffer leads. That of the feed may be later: a commit under way may stop before
  /// it tells its change.
  private(set) var bufferedRevision: UInt64 = 0
  /// Whether the channel is in the list of changed channels, whose buffers must be given out and recycled.
  var isDirty = false
  /// The beginning of each delta, up to the member `from`.
  private let head: [UInt8]
  /// Whether the watches get counts of rows instead of rows (Protocol/README.md, "Counts").
  let isCounting: Bool
  /// The channels of the same feed for watches that get counts, or identities too. Owned by the channel for rows.
  private(set) var others: [FeedChannel] = []
  /// The identities that the watches get beside deleted rows; nil if they get none (Protocol/README.md, "Identities").
  let identities: FeedIdentities?
  /// Incremented when the selection changes.
  private(set) var selectionVersion: UInt64 = 0
  /// The notifications of the selection of this turn, each encoded once for all watches; nil before the first one.
  private(set) var selections: TurnBuffer?
  /// The place of the last one, and what it tells.
  private var lastSelection: (version: UInt64, revision: UInt64, frame: Range<Int>)?
  /// Whether rows of the feed may have a type, cached for a version of the feeds' structure.
  private var types: (version: UInt64, areThere: Bool)?
  /// The hint of a commit whose delta some watches get later.
  private var hint: (from: UInt64, revision: UInt64, text: [UInt8])?

  init(_ feed: Feed, isCounting: Bool = false, identities: FeedIdentities? = nil) {
    (self.feed, self.isCounting, self.identities) = (feed, isCounting, identities)
    var head = ByteBuffer()
    head.beginNotification("delta")
    head.append("\"feed\":", quoted: feed.name)
    head.append(",\"from\":")
    self.head = Array(head.bytes)
  }

  /// Appends the beginning of a delta, up to the member `from`. The caller appends its value and the other members, and calls
  /// `endMessage`.
  func beginDelta(to out: inout ByteBuffer) { head.withUnsafeBytes { out.append($0) } }

  /// Returns the revision from which a delta leads; nil for other frames.
  func origin(ofDelta frame: UnsafeRawBufferPointer) -> UInt64? {
    guard frame.starts(with: head) else { return nil }
    return frame[head.count...].prefix { $0 != UInt8(ascii: ",") }.reduce(0) {
      $0 &* 10 &+ UInt64($1 &- UInt8(ascii: "0"))
    }
  }

  /// Whether rows of the feed may have a type. Cached, because the feed must ask every feed whose rows it shows.
  func hasTypes(asOf version: UInt64) -> Bool {
    if let types, types.version == version { return types.areThere }
    let areThere = feed.hasTypes
    types = (version, areThere)
    return areThere
  }

  /// Returns the channel of the same feed for watches that get counts, or else identities. Creates it on the first call.
  func other(isCounting: Bool) -> FeedChannel {
    precondition(!self.isCounting && identities == nil, "the channel of rows keeps the others")
    if let known = others.first(where: { $0.isCounting == isCounting }) { return known }
    let identities = isCounting ? nil : FeedIdentities(of: feed)
    let made = FeedChannel(feed, isCounting: isCounting, identities: identities)
    others.append(made)
    return made
  }

  /// Lets go of the feed, which is gone, so that watches that were not told of its end do not keep its rows. Only on the channel for
  /// rows.
  func keepRemains() {
    let (former, remains) = (feed, feed.makeRemains())
    for channel in [self] + others {
      channel.feed = remains
      channel.identities?.keepRemains(remains)
    }
    former.channel = nil
    remains.channel = self
  }

  /// Whether no other channel of the feed follows its changes.
  var isOnlyChannel: Bool { others.isEmpty || !others.contains { $0.isFollowing } }

  /// Whether the channel has watches, or keeps identities for one that resumes.
  private var isFollowing: Bool { watchCount > 0 || !(identities?.isForgotten ?? true) }

  /// The number of all watches of the feed.
  var totalWatchCount: Int { others.reduce(watchCount) { $0 + $1.watchCount } }

  /// The live watches of the feed. O(live watches).
  var allLive: [Watch] { live + others.flatMap(\.live) }

  var live: [Watch] { inStep + solo }

  func selectionDidChange() { selectionVersion &+= 1 }

  /// Returns the notification of the selection. Encodes it unless this turn did. The watches that are told have reached the feed's
  /// revision.
  func selectionFrame() -> (buffer: TurnBuffer, frame: Range<Int>) {
    let buffer = selections ?? TurnBuffer(isShared: true)
    selections = buffer
    if let last = lastSelection, last.version == selectionVersion, last.revision == feed.revision {
      return (buffer, last.frame)
    }
    let frame = buffer.bytes.appendNotification("selection", of: feed.name) { out in
      out.append(",\"revision\":", integer: feed.revision)
      out.append(",\"selected\":")
      out.append(feed.selection)
    }
    lastSelection = (selectionVersion, feed.revision, frame)
    return (buffer, frame)
  }

  func didBegin() { watchCount += 1 }

  func didEnd() {
    precondition(watchCount > 0, "a watch ends once")
    watchCount -= 1
  }

  func addSolo(_ watch: Watch) {
    precondition(watch.isLive, "a watch that is not live misses deltas")
    solo.add(watch, as: .solo)
  }

  /// Records that a delta to the feed's revision is in the buffer.
  func didBuffer() { bufferedRevision = feed.revision }

  /// Keeps the hint of a commit for watches that get its delta later.
  func keepHint(of publication: Publication) { hint = publication.hint.map { (publication.from, feed.revision, $0) } }

  /// Returns the kept hint if nothing but its commit has changed the feed since `from`, which is before the feed's revision.
  func hint(since from: UInt64) -> [UInt8]? {
    guard let hint, hint.from <= from, hint.revision == feed.revision else { return nil }
    return hint.text
  }

  /// Moves a watch with the feed's revision from the solo list to the watches in step.
  func join(_ watch: Watch) {
    solo.take(watch)
    watch.given = buffer.bytes.count
    inStep.add(watch, as: .inStep)
  }

  /// Removes a live watch from its list. O(1).
  func remove(_ watch: Watch) {
    if watch.seat == .inStep { inStep.take(watch) } else { solo.take(watch) }
  }

  /// Reuses the buffers, whose bytes have been given out and written.
  func recycle() {
    isDirty = false
    buffer.recycle()
    for watch in inStep { watch.given = 0 }
    if lastSelection == nil { return }
    lastSelection = nil
    selections?.recycle()
    selections?.releaseMemory()
  }

  /// Traps in a debug build unless each watch is at its position. O(live watches).
  func checkInvariants() {
    #if DEBUG
      inStep.checkInvariants(.inStep)
      solo.checkInvariants(.solo)
      assert(live.allSatisfy(\.isLive) && watchCount >= live.count)
    #endif
  }
}

extension Feed {
  /// The watches of this feed; nil if there were none. O(1).
  ///
  /// Nothing but the engine sets ``channel``, so the cast is checked in debug builds only.
  var watching: FeedChannel? { channel.map { unsafeDowncast($0, to: FeedChannel.self) } }

  /// Calls `body` with the watches of this feed, if there were any. Counts no reference.
  @inline(__always)
  func withWatching(_ body: (FeedChannel) -> Void) {
    unretainedChannel?._withUnsafeGuaranteedRef { body(unsafeDowncast($0, to: FeedChannel.self)) }
  }
}

/// Composing the changes that a watch missed.
///
/// Nothing is kept of a composition that is not complete: a user can have many watches, and each would keep its rows.
extension FeedChannel {
  /// The largest composed change that is sent: a snapshot of the feed is shorter than a longer one.
  private var maxSize: Int { max(1024, feed.count) }

  /// Whether a delta has the counts of so many sections that it is made by itself: each of thousands of feeds above may have as many.
  func hasManyCounts(_ few: Int) -> Bool { isCounting && feed.sectionCount > few }

  /// Whether the changes since a revision are so many, or have so many rows or counts, that they are composed in parts. O(log changes
  /// + fewRows).
  /// - Parameter fewRows: the rows that are composed at once.
  func missedMuch(since revision: UInt64, fewRows: Int) -> Bool {
    guard let history = feed.history, history.reaches(revision) else { return false }
    return hasManyCounts(fewRows) || history.lists(moreThan: fewRows, from: history.place(after: revision))
  }

  /// Composes the changes of the feed from one revision to another. Watches of counts get only the changes of sections.
  ///
  /// Returns nil if the history no longer reaches the revision, or if the change would be larger than a snapshot.
  /// - Parameter pace: stops between two steps. The feed may change meanwhile.
  func change(from: UInt64, to revision: UInt64, _ pace: Pace? = nil) -> Change? {
    guard let history = feed.history, history.reaches(from) else { return nil }
    var accumulator = ChangeAccumulator()
    var reached = from
    while reached < revision {
      guard let history = feed.history, history.reaches(reached),
        let (change, to) = history.change(at: history.place(after: reached))
      else { return nil }
      if isCounting {
        accumulator.add(change.withoutRows) { pace?.didCompose() }
      } else {
        accumulator.add(change) { pace?.didCompose() }
      }
      reached = to
      // The upper bound falls when the next changes are composed.
      if accumulator.size > 2 * maxSize { return nil }
      pace?.didCompose()
    }
    if accumulator.size > maxSize { return nil }
    return accumulator.finish { pace?.didCompose() }.normalizingMoves { pace?.didCompareMoves() }
  }
}
