import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// The deltas for watches that missed many changes or rows, which are composed and encoded one at a time, in slices of the turns.
///
/// The work runs on a stack of its own, never at the same time as the turn. Feeds may change between two slices: rows are read
/// from snapshots. Users take turns; a delta that watches of several users need is made at the first of these turns.
///
/// Invariant: a delta that has receivers is the current one, or waits and is in the queue of a user.
final class LongCatchUps {
  /// The work between two looks at the clock, in units of about a microsecond.
  private static let unitsPerLook = 128

  /// What brings a watch up to date.
  private struct Need: Hashable {
    let channel: ObjectIdentifier
    let from: UInt64

    init(_ channel: FeedChannel, _ from: UInt64) {
      self.channel = ObjectIdentifier(channel)
      self.from = from
    }
  }

  private let runner: (any SliceRunner)?
  /// The delta that is being made.
  private var current: LongDelta?
  /// The deltas that are not begun, which more watches may wait for, with the users that have them in their queues.
  private var waiting: [Need: (delta: LongDelta, users: Set<UInt32>)] = [:]
  private var queue = UserQueue<LongDelta>()
  /// Whether the rest of the work is done without stopping.
  private var isHurried = false
  private let pace = Pace()

  /// - Parameter runner: nil if each delta is encoded at once, whatever its length.
  init(_ runner: (any SliceRunner)? = nil) {
    self.runner = runner
  }

  /// The rows of a delta that is encoded at once.
  var fewRows: Int {
    guard let runner else { return .max }
    return runner.isEager ? 0 : LongDelta.fewRows
  }

  var hasWork: Bool { current != nil || !queue.isEmpty }

  /// The deltas that watches wait for. O(deltas).
  var deltas: [LongDelta] { [current].compactMap { $0 } + waiting.values.map(\.delta) }

  /// Lets a watch wait for a delta from the revision of its copy. One that was not begun yet is shared.
  func add(_ watch: Watch) {
    let need = Need(watch.channel, watch.queuedRevision)
    let delta = waiting[need]?.delta ?? LongDelta(of: watch.channel, from: watch.queuedRevision, .missed)
    if waiting[need, default: (delta, [])].users.insert(watch.session.peer.uid).inserted {
      _ = queue.append(delta, of: watch.session.peer.uid)
    }
    delta.add(watch)
    watch.progress = .awaiting(delta)
  }

  /// Removes and returns the first delta that is still needed.
  private func takeNext() -> LongDelta? {
    while let delta = queue.takeFirst() {
      let need = Need(delta.channel, delta.from)
      // It was made at the turn of another user.
      guard waiting[need]?.delta === delta else { continue }
      waiting[need] = nil
      if !delta.receivers.isEmpty { return delta }
    }
    return nil
  }

  /// Works for the time of a slice.
  ///
  /// - Parameter make: composes and encodes a delta, and gives it to all its receivers. It stops where the pace says so.
  func advance(_ make: @escaping (LongDelta, Pace) -> Void) {
    guard let runner else { return assert(!hasWork, "nothing makes the deltas") }
    runner.beginSlice()
    repeat {
      if current != nil {
        guard runner.resume() else { return }
        end()
      }
      guard let delta = takeNext() else { return }
      current = delta
      let units = runner.isEager ? 0 : Self.unitsPerLook
      pace.begin(units: units) { [unowned self] in
        if !isHurried && runner.isSliceOver { runner.suspend() }
        return units
      }
      let pace = pace
      guard runner.run({ make(delta, pace) }) else { return }
      end()
    } while !runner.isSliceOver
  }

  private func end() {
    pace.end()
    precondition(current?.receivers.isEmpty == true, "a watch waits for a delta that is gone")
    current = nil
  }

  /// Does the rest of the work that was begun, and ends the stack.
  func finish() {
    guard let runner else { return }
    isHurried = true
    while current != nil { if runner.resume() { end() } }
    isHurried = false
    runner.end()
  }

  /// Traps in a debug build unless each receiver is at its position. O(receivers).
  func checkInvariants() {
    #if DEBUG
      for delta in deltas { delta.checkInvariants() }
      for (_, users) in waiting.values { assert(!users.isEmpty, "a delta is at nobody's turn") }
    #endif
  }
}

extension Engine {
  /// Composes and encodes deltas with many rows for watches that fell behind, for the time of a slice.
  func advanceLongCatchUps() {
    if !watches.catchUps.hasWork { return }
    watches.catchUps.advance { [unowned self] delta, pace in catchUp(delta, pace) }
  }

  /// Composes the changes that the receivers of a delta missed until now, encodes them and queues them. Others work between
  /// two steps, and may change the feed.
  private func catchUp(_ delta: LongDelta, _ pace: Pace) {
    if delta.channel.identities != nil {
      readIdentities(delta, pace)
      // The receivers may have waited for the identities only.
      if delta.from >= delta.channel.feed.revision { return release(delta) }
    }
    guard let first = delta.receivers.first else { return }
    let frame = TurnBuffer()
    let missed = Missed(by: first)
    if let change = delta.channel.change(from: delta.from, to: missed.revision, pace) {
      if delta.receivers.isEmpty { return }
      append(change, of: delta, missed, to: frame, pace)
    }
    status.counters.composedDeltas &+= frame.bytes.count == 0 ? 0 : UInt64(delta.receivers.count)
    deliver(delta, frame, revision: missed.revision, pace)
  }

  /// What a delta tells of the rows, read while the feed changes.
  private struct Missed {
    let revision: UInt64
    let content: Content
    /// The identities of the rows; nil if they are not known, or not told.
    let identities: PastIdentities?
    let withTypes: Bool
    /// Whether the feed was undefined.
    let isEnd: Bool

    enum Content {
      case rows(added: FeedSnapshot, updated: FeedSnapshot)
      /// The member `counts`, with the comma before it.
      case counts([UInt8])
    }

    /// - Parameter watch: the memory of the rows is charged to its connection, also after that has closed.
    init(by watch: Watch) {
      let feed = watch.channel.feed
      revision = feed.revision
      withTypes = feed.hasTypes
      isEnd = feed.isGone
      identities = watch.channel.identities?.past(since: watch.queuedRevision)
      if watch.channel.isCounting {
        var counts = ByteBuffer()
        counts.append(countsOf: feed)
        content = .counts(Array(counts.bytes))
      } else {
        let memory = watch.session.snapshots
        content = .rows(
          added: feed.makeSnapshot(chargedTo: memory), updated: feed.makeSnapshot(chargedTo: memory))
      }
    }
  }

  /// Writes a delta frame; nothing if it would be too long.
  private func append(_ change: Change, of delta: LongDelta, _ missed: Missed, to buffer: TurnBuffer, _ pace: Pace) {
    let frame = beginDelta(in: buffer, delta.channel, from: delta.from, to: missed.revision)
    switch missed.content {
    case .counts(let counts):
      buffer.bytes.append(sectionsOf: change)
      counts.withUnsafeBytes { buffer.bytes.append($0) }
    case .rows(let added, let updated):
      buffer.bytes.reserve(limits.maxFrame)
      buffer.bytes.append(UInt8(ascii: ","))
      buffer.bytes.append(change) { pace.didWriteRows() }
      var rows = RowsWriter(withTypes: missed.withTypes && !(change.added.isEmpty && change.updated.isEmpty))
      rows.begin(&buffer.bytes)
      append([(change.added, added), (change.updated, updated)], to: buffer, &rows, pace)
      rows.end(&buffer.bytes)
      if delta.channel.identities != nil {
        let removed = missed.identities?.removed(
          by: change, from: delta.from, to: missed.revision, in: delta.channel.feed, pace)
        buffer.bytes.append(removed, end: Frame.headerLength + limits.maxFrame) { pace.didWriteRows() }
      }
    }
    _ = endDelta(in: buffer, frame, isEnd: missed.isEnd)
  }

  /// Writes the elements of rows, until they do not fit a frame.
  private func append(
    _ lists: [(paths: [IndexPath], snapshot: FeedSnapshot)], to buffer: TurnBuffer, _ rows: inout RowsWriter,
    _ pace: Pace
  ) {
    let end = Frame.headerLength + limits.maxFrame
    var steps = Steps(pace, buffer.bytes.count)
    for (paths, snapshot) in lists {
      for path in paths where buffer.bytes.count + rows.typesSize <= end {
        snapshot.skip(to: path) { pace.didSkipRows() }
        _ = snapshot.next(max: 1) { rows.append($0.text, type: $0.type, to: &buffer.bytes) }
        steps.didWrite(upTo: buffer.bytes.count)
      }
    }
  }
}
