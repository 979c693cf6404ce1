import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// One connection's watch of one feed: the revision of the watcher's copy, and the next step.
///
/// ```
///            snapshot parts sent          delta made while the queue is full,
///  snapshot ───────────────────▶ behind    or before the throttle's time
///      ▲                         │   ▲ ───────────────────────────────┐
///      │ out of reach            ▼   │                                │
///      └──────────────────── catching up ──────────────────────────▶ live
/// ```
///
/// A watch has exactly one seat: a list of its `FeedChannel` if it is live, otherwise a list of `WatchSchedule` or of a
/// `LongDelta`. A watch that is not live costs nothing while its feed changes: the missed changes are composed when they can be sent.
/// Only the engine's thread may use it.
final class Watch: Timed {
  enum Progress {
    /// Every delta is queued when it is made.
    case live
    /// The copy is at `revision`. Later changes are composed once the queue has room and the throttle allows it.
    case behind
    /// The copy is at `revision`. The next delta is being encoded in parts, or composed and encoded.
    case awaiting(LongDelta)
    /// A snapshot is being sent in parts.
    case snapshot(SnapshotCursor)
    /// The watcher needs a new snapshot, for a reason that is logged. It is made when it can be sent: the sections of a reset may take
    /// as much as a frame.
    case cutOff(because: String)
  }

  enum Seat {
    /// The channel's list of watches that share each delta.
    case inStep
    /// The channel's list of live watches that are throttled or at a revision of their own.
    case solo
    /// The schedule's queue of watches that can be sent something now.
    case ready
    /// The schedule's heap of watches that wait for their throttle.
    case throttled
    /// The schedule's list of watches whose connection is full.
    case blocked
    /// The receivers of a delta that is being encoded in parts.
    case awaiting
    /// No list: the watch is being advanced, or moves between lists.
    case standing
    /// No list. The watch never gets another seat.
    case ended
  }

  /// What the watcher was told besides its rows.
  struct Told {
    /// The time of the last notification.
    var at: Instant
    /// The daemon's revision in the last bookmark; before the first, the revision at which the watch began.
    var revision: UInt64
    /// The version of the channel's selection that was sent last.
    var selection: UInt64
  }

  /// The charge for what the watches of a user share: the identities that they get, or the history of their feed after that is gone.
  struct Charge {
    /// What its user is charged for; nil if another watch of the user pays.
    var share: SnapshotMemory.Share?
    /// The watches of which one of each user pays. Written, with the place there, by ``Payers`` only.
    var payers: Payers?
    var place = 0
  }

  /// The memory of a watch in bytes, with its places in lists, rounded up. Snapshots are charged by themselves.
  static let memory = 256

  /// Unretained: a session ends its watches before it is released.
  private let owner: Unmanaged<Session>
  /// The number of the watch, above 0, by which the output of its connection knows it.
  let number: UInt32
  let channel: FeedChannel
  /// The minimum time between two deltas, in nanoseconds; 0 for none.
  let throttle: UInt64
  /// Whether a part of a snapshot may have rows of several sections.
  let spansSections: Bool
  var progress: Progress
  /// The revision of the watcher's copy after it has read its queued output.
  var queuedRevision: UInt64

  /// The list of the watch. Written, with `place`, by that list.
  var seat = Seat.standing
  /// The index in the list.
  var place = 0
  /// The number of bytes of the channel's buffer of this turn that the watch was given, while it is in step.
  var given = 0
  /// The time when the next delta may be queued.
  var nextDelta = Instant(nanoseconds: 0)
  var told: Told
  var charge = Charge()
  /// The timer of the next bookmark.
  var timer = TimerSeat()

  init(
    session: Session, number: UInt32, channel: FeedChannel, revision: UInt64, throttle: UInt64, spansSections: Bool,
    now: Instant
  ) {
    owner = .passUnretained(session)
    (self.number, self.channel, self.throttle, self.spansSections) = (number, channel, throttle, spansSections)
    progress = .live
    queuedRevision = revision
    // A new watcher assumes an empty selection.
    told = Told(
      at: now, revision: revision, selection: channel.selectionVersion &- (channel.feed.selection.isEmpty ? 0 : 1))
  }

  /// The session of the watch.
  /// - Precondition: the watch has not ended.
  var session: Session {
    assert(!isEnded, "an ended watch may outlive its session")
    return owner.takeUnretainedValue()
  }

  /// The revision of the watcher's copy after it has read all deltas made for it: `from` of the next delta.
  var revision: UInt64 { seat == .inStep ? channel.feed.revision : queuedRevision }

  var isEnded: Bool { seat == .ended }

  var isLive: Bool { if case .live = progress { true } else { false } }

  /// Whether the watcher has no complete copy until the rest of a snapshot, or a new one, is sent.
  var isSnapshotting: Bool {
    switch progress {
    case .snapshot, .cutOff: true
    case .live, .behind, .awaiting: false
    }
  }

  /// The difference between the revision of the feed and that of the watcher's copy.
  var lag: UInt64 { channel.feed.revision > revision ? channel.feed.revision - revision : 0 }
}

/// Lists of watches with one seat, each at the index that it knows. Adding and removing are O(1).
extension [Watch] {
  /// Gives a watch that stands nowhere a seat in this list.
  mutating func add(_ watch: Watch, as seat: Watch.Seat) {
    precondition(watch.seat == .standing, "a watch has one seat")
    watch.seat = seat
    watch.place = count
    append(watch)
  }

  /// Removes a watch, which stands nowhere then; the last one takes its place.
  mutating func take(_ watch: Watch) {
    precondition(self[watch.place] === watch, "the watch has no seat in this list")
    let last = removeLast()
    if last !== watch {
      last.place = watch.place
      self[watch.place] = last
    }
    watch.seat = .standing
  }

  /// Traps in a debug build unless each watch is at its place. O(watches).
  func checkInvariants(_ seat: Watch.Seat) {
    for (place, watch) in enumerated() { assert(watch.seat == seat && watch.place == place, "a watch is misplaced") }
  }
}

/// Sends one snapshot of a feed in parts: holds the position and encodes the next part.
final class SnapshotCursor {
  private let snapshot: FeedSnapshot
  /// Whether only the counts of the rows are sent, in one part.
  private let isCounting: Bool
  /// Whether the rows of a part may be of several sections.
  private let spansSections: Bool
  /// What every part begins with, up to the revision.
  private var head = ByteBuffer()
  /// The list of sections if the snapshot replaces an earlier state of the watcher's copy (`"reset": true`), until it is
  /// sent.
  private var resetList: ByteBuffer?
  /// Whether the feed was already undefined when the snapshot was made, so that the watch ends with it.
  private let isEnd: Bool
  private(set) var isDone = false
  /// Rows that were read and did not fit in the last part: elements and their types.
  private var carried: [(text: [UInt8], type: [UInt8])] = []
  /// What is charged for them.
  private var charge: SnapshotMemory.Share?
  private let memory: SnapshotMemory
  /// The place of the first of them.
  private var carriedPlace = IndexPath(section: 0, row: 0)
  private var rows: RowsWriter

  var revision: UInt64 { snapshot.revision }

  /// Creates a cursor for the current rows of a feed.
  init(of channel: FeedChannel, reset: Bool, spansSections: Bool, chargedTo memory: SnapshotMemory) {
    (self.spansSections, self.memory) = (spansSections, memory)
    snapshot = channel.feed.makeSnapshot(chargedTo: memory)
    isCounting = channel.isCounting
    rows = RowsWriter(withTypes: channel.feed.hasTypes && !channel.isCounting)
    isEnd = channel.feed.isGone
    head.beginNotification("snapshot")
    head.append("\"feed\":", quoted: channel.feed.name)
    head.append(",\"revision\":", integer: snapshot.revision)
    if reset {
      var list = ByteBuffer()
      list.appendSectionList(of: channel.feed)
      resetList = consume list
    }
  }

  /// Whether the list of sections of a reset leaves a frame of `limit` bytes room for the rest.
  func fits(_ limit: Int) -> Bool { head.count &+ (resetList?.count ?? 0) &+ 2 &* Self.tail <= limit }

  /// Encodes the next parts, at least one: whole frames, each with rows of one section unless parts may span sections. Stops
  /// after about `target` bytes of elements. A part with several rows takes at most `limit` bytes.
  func writeParts(to out: inout ByteBuffer, target: Int, limit: Int) {
    let start = out.count
    // A part follows while it cannot make the sum much longer than the target.
    repeat { writePart(to: &out, target: target, limit: limit) } while !isDone && out.count &- start < target / 2
  }

  private func writePart(to out: inout ByteBuffer, target: Int, limit: Int) {
    let frame = out.beginFrame()
    out.append(head.bytes)
    let startsReset = resetList != nil
    if let list = resetList.take() {
      out.append(",\"reset\":true,\"sections\":")
      out.append(list.bytes)
    }
    let place = isCounting ? IndexPath(section: 0, row: 0) : carried.isEmpty ? snapshot.place : carriedPlace
    out.append(",\"at\":")
    out.append(place)
    rows.begin(&out)
    if !isCounting {
      appendRows(from: place, &out, target: target, end: frame + Frame.headerLength + limit, mayBeEmpty: startsReset)
    }
    rows.end(&out)
    isDone = isCounting || carried.isEmpty && snapshot.isFinished
    out.append(isDone ? ",\"last\":true" : ",\"last\":false")
    if isDone && isEnd { out.append(",\"ended\":true") }
    out.endMessage()
    out.endFrame(at: frame)
  }

  /// - Parameters:
  ///   - place: that of the next row.
  ///   - end: the maximum length of `out`.
  ///   - mayBeEmpty: whether a part without rows makes progress.
  private func appendRows(from place: IndexPath, _ out: inout ByteBuffer, target: Int, end: Int, mayBeEmpty: Bool) {
    let start = out.count
    withUnsafeMutablePointer(to: &out) { out in
      // Most parts have no such rows.
      let waiting = carried.isEmpty ? [] : carried
      if !waiting.isEmpty { carried.removeAll() }
      for (text, type) in waiting {
        text.withUnsafeBytes { text in
          type.withUnsafeBytes { add(text, $0, to: &out.pointee, from: place, end: end, mayBeEmpty) }
        }
      }
      // A row that does not fit must be carried, so nothing is read after one that fills the part.
      while carried.isEmpty && !snapshot.isFinished && (spansSections || snapshot.section == place.section),
        out.pointee.count &- start < target
      {
        let bytes = target &- (out.pointee.count &- start)
        _ = snapshot.next(max: Self.rowsAtOnce, bytes: bytes, acrossSections: spansSections) { row in
          add(row.text, row.type, to: &out.pointee, from: place, end: end, mayBeEmpty)
        }
      }
    }
    if carried.isEmpty && charge == nil { return }
    charge = carried.isEmpty ? nil : memory.hold(carried.reduce(0) { $0 + $1.text.count + $1.type.count })
  }

  /// The rows that are read between two looks at the length of the part.
  private static let rowsAtOnce = 16
  /// The bytes after the rows of a part, and between them.
  private static let tail = 64

  /// Adds a row to the part, or carries it to the next one if the frame would exceed its limit.
  private func add(
    _ text: UnsafeRawBufferPointer, _ type: UnsafeRawBufferPointer, to out: inout ByteBuffer, from place: IndexPath,
    end: Int, _ mayBeEmpty: Bool
  ) {
    let after = out.count &+ text.count &+ (rows.withTypes ? rows.typesSize &+ type.count : 0) &+ Self.tail
    if !carried.isEmpty || after > end && (rows.count > 0 || mayBeEmpty) {
      if carried.isEmpty { carriedPlace = snapshot.place(rows.count, after: place) }
      carried.append((Array(text), Array(type)))
      return
    }
    rows.append(text, type: type, to: &out)
  }
}
