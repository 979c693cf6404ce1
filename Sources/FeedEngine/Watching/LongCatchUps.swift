import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// The deltas with many rows for watches that fell behind, which are composed and encoded one at a time, in slices of the
/// turns.
///
/// The work runs on a stack of its own, never at the same time as the turn. Feeds may change between two slices: rows are read
/// from snapshots.
///
/// Invariant: work is under way exactly if its delta is the first one and no watch can begin to wait for it.
final class LongCatchUps {
  /// The work between two looks at the clock, in units of about a microsecond.
  private static let unitsPerLook = 128

  private let runner: (any SliceRunner)?
  /// The deltas in the order in which they were needed.
  private(set) var deltas: [LongDelta] = []
  /// Whether the first delta is being made.
  private var isUnderWay = false
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

  var hasWork: Bool { !deltas.isEmpty }

  /// Lets a watch wait for a delta from the revision of its copy. One that was not begun yet is shared.
  func add(_ watch: Watch, _ progress: CatchUp) {
    let delta =
      deltas[(isUnderWay ? 1 : 0)...].last { $0.channel === watch.channel && $0.from == watch.queuedRevision }
      ?? append(LongDelta(of: watch.channel, from: watch.queuedRevision, .missed(progress)))
    delta.add(watch)
    watch.progress = .awaiting(delta)
  }

  private func append(_ delta: LongDelta) -> LongDelta {
    deltas.append(delta)
    return delta
  }

  /// Works for the time of a slice.
  ///
  /// - Parameter make: composes and encodes a delta, and gives it to all its receivers. It stops where the pace says so.
  func advance(_ make: @escaping (LongDelta, Pace) -> Void) {
    guard let runner else { return assert(deltas.isEmpty, "nothing makes the deltas") }
    runner.beginSlice()
    repeat {
      if isUnderWay {
        guard runner.resume() else { return }
        end()
      }
      while let delta = deltas.first, delta.receivers.isEmpty { deltas.removeFirst() }
      guard let delta = deltas.first else { return }
      isUnderWay = true
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
    isUnderWay = false
    precondition(deltas.removeFirst().receivers.isEmpty, "a watch waits for a delta that is gone")
  }

  /// Does the rest of the work that was begun, and ends the stack.
  func finish() {
    guard let runner else { return }
    isHurried = true
    while isUnderWay { if runner.resume() { end() } }
    isHurried = false
    runner.end()
  }

  /// Traps in a debug build unless each receiver is at its position. O(receivers).
  func checkInvariants() {
    #if DEBUG
      for delta in deltas { delta.checkInvariants() }
      assert(!isUnderWay || !deltas.isEmpty)
    #endif
  }
}

extension Engine {
  /// Composes and encodes deltas with many rows for watches that fell behind, for the time of a slice.
  func advanceLongCatchUps() {
    if !watches.catchUps.hasWork { return }
    watches.catchUps.advance { [unowned self] delta, pace in catchUp(delta, pace) }
  }

  /// The largest composed change that is sent: a snapshot of the feed is shorter than a longer one.
  func maxCatchUp(_ feed: Feed) -> Int { max(1024, feed.count) }

  /// Composes the changes that the receivers of a delta missed until now, encodes them and queues them. Others work between
  /// two steps, and may change the feed.
  private func catchUp(_ delta: LongDelta, _ pace: Pace) {
    guard case .missed(var progress) = delta.content else { return }
    let feed = delta.channel.feed
    let frame = TurnBuffer()
    let rows = MissedRows(of: feed)
    if let change = progress.compose(feed, to: rows.revision, maxSize: maxCatchUp(feed), pace) {
      if delta.receivers.isEmpty { return }
      append(change, of: delta, rows, to: frame, pace)
    }
    status.counters.composedDeltas &+= frame.bytes.count == 0 ? 0 : UInt64(delta.receivers.count)
    deliver(delta, frame, revision: rows.revision, pace)
  }

  /// Rows that a delta lists, read while the feed changes.
  private struct MissedRows {
    let added: FeedSnapshot
    let updated: FeedSnapshot
    let withTypes: Bool
    /// Whether the feed was undefined.
    let isEnd: Bool

    var revision: UInt64 { added.revision }

    init(of feed: Feed) {
      added = feed.makeSnapshot()
      updated = feed.makeSnapshot()
      withTypes = feed.hasTypes
      isEnd = feed.isGone
    }
  }

  /// Writes a delta frame; nothing if it would be too long.
  private func append(
    _ change: Change, of delta: LongDelta, _ missed: MissedRows, to buffer: TurnBuffer, _ pace: Pace
  ) {
    let frame = beginDelta(in: buffer, delta.channel, from: delta.from, to: missed.revision)
    let end = frame + Frame.headerLength + limits.maxFrame
    buffer.bytes.reserve(limits.maxFrame)
    buffer.bytes.append(UInt8(ascii: ","))
    buffer.bytes.append(change) { pace.didWriteRows() }
    var rows = RowsWriter(withTypes: missed.withTypes && !(change.added.isEmpty && change.updated.isEmpty))
    rows.begin(&buffer.bytes)
    var steps = Steps(pace, buffer.bytes.count)
    for (paths, snapshot) in [(change.added, missed.added), (change.updated, missed.updated)] {
      for path in paths where buffer.bytes.count + rows.typesSize <= end {
        snapshot.skip(to: path) { pace.didSkipRows() }
        _ = snapshot.next(max: 1) { rows.append($0.text, type: $0.type, to: &buffer.bytes) }
        steps.didWrite(upTo: buffer.bytes.count)
      }
    }
    rows.end(&buffer.bytes)
    _ = endDelta(in: buffer, frame, isEnd: missed.isEnd)
  }
}
