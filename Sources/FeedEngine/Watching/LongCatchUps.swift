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
  /// What brings a watch up to date.
  private struct Need: Hashable {
    let channel: ObjectIdentifier
    let from: UInt64

    init(_ channel: FeedChannel, _ from: UInt64) {
      self.channel = ObjectIdentifier(channel)
      self.from = from
    }
  }

  private let stack: ReadStack<LongDelta>
  /// The deltas that are not begun, which more watches may wait for, with the users that have them in their queues.
  private var waiting: [Need: (delta: LongDelta, users: Set<UInt32>)] = [:]
  private let pace = Pace()

  /// - Parameter runner: nil if each delta is encoded at once, whatever its length.
  init(_ runner: (any SliceRunner)? = nil) {
    stack = ReadStack(runner)
  }

  /// The rows of a delta that is encoded at once.
  var fewRows: Int { stack.isSliced ? stack.isEager ? 0 : LongDelta.fewRows : .max }

  var hasWork: Bool { stack.hasWork }

  /// The deltas that watches wait for. O(deltas).
  var deltas: [LongDelta] { [stack.current].compactMap { $0 } + waiting.values.map(\.delta) }

  /// Lets a watch wait for a delta from the revision of its copy. One that was not begun yet is shared.
  func add(_ watch: Watch) {
    let need = Need(watch.channel, watch.queuedRevision)
    let delta = waiting[need]?.delta ?? LongDelta(of: watch.channel, from: watch.queuedRevision, .missed)
    if waiting[need, default: (delta, [])].users.insert(watch.session.peer.uid).inserted {
      _ = stack.append(delta, of: watch.session.peer.uid)
    }
    delta.add(watch)
    watch.progress = .awaiting(delta)
  }

  /// Works for the time of a slice.
  ///
  /// - Parameter make: composes and encodes a delta, and gives it to all its receivers. It stops where the pace says so.
  func advance(_ make: @escaping (LongDelta, Pace) -> Void) {
    stack.advance { [self] delta in
      let need = Need(delta.channel, delta.from)
      // Otherwise it was made at the turn of another user.
      guard waiting[need]?.delta === delta else { return }
      waiting[need] = nil
      pace.begin(units: stack.unitsPerLook) { [stack] in
        stack.look()
        return stack.unitsPerLook
      }
      make(delta, pace)
      pace.end()
      precondition(delta.receivers.isEmpty, "a watch waits for a delta that is gone")
    }
  }

  /// Does the rest of the work that was begun, and ends the stack.
  func finish() { stack.finish() }

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
    let state = LongDelta.State(for: first)
    if let change = delta.channel.change(from: delta.from, to: state.revision, pace) {
      if delta.receivers.isEmpty { return }
      write(change, of: delta, state, to: frame, pace)
    }
    status.counters.composedDeltas &+= frame.bytes.count == 0 ? 0 : UInt64(delta.receivers.count)
    deliver(delta, frame, revision: state.revision, pace)
  }
}
