import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// A delta with many rows, which is encoded in parts, once for all watches that it brings from one revision to another.
///
/// It is made by a commit that takes several turns, and encoded when that commit has taken effect: until the end of the
/// encoding nothing changes feeds, and everybody can read them. Or it is composed for watches that fell behind, while feeds
/// change; see ``LongCatchUps``.
///
/// Invariant: each receiver has the seat `.awaiting`, its place in the list, and a copy at `from`.
final class LongDelta {
  /// A delta that lists at most so many rows is encoded at once.
  static let fewRows = 4096

  enum Content {
    case published(Change, Publication)
    /// The changes since `from`.
    case missed
  }

  /// The state of a feed to which a delta leads, read while the feed changes.
  struct State {
    let revision: UInt64
    let content: Content
    /// The identities of the rows; nil if they are not known, or not told.
    let identities: PastIdentities?
    let withTypes: Bool
    /// Whether the feed was undefined.
    let isEnd: Bool
    /// The animation hint of the only missed commit, if it was kept.
    let hint: [UInt8]?

    enum Content {
      case rows(added: FeedSnapshot, updated: FeedSnapshot)
      /// The member `counts`, with the comma before it.
      case counts([UInt8])
    }

    /// The present state.
    /// - Parameter watch: the memory of the rows is charged to its connection, also after that has closed.
    init(for watch: Watch) {
      let feed = watch.channel.feed
      revision = feed.revision
      withTypes = feed.hasTypes
      isEnd = feed.isGone
      hint = watch.channel.hint(since: watch.queuedRevision)
      identities = watch.channel.identities?.past(since: watch.queuedRevision)
      if watch.channel.isCounting {
        var counts = ByteBuffer()
        counts.append(countsOf: feed)
        content = .counts(Array(counts.bytes))
      } else {
        let memory = watch.session.snapshots
        content = .rows(added: feed.makeSnapshot(chargedTo: memory), updated: feed.makeSnapshot(chargedTo: memory))
      }
    }
  }

  let channel: FeedChannel
  /// The revision of the watchers' copies before the delta.
  let from: UInt64
  let content: Content
  private(set) var receivers: [Watch] = []

  init(of channel: FeedChannel, from: UInt64, _ content: Content) {
    (self.channel, self.from, self.content) = (channel, from, content)
  }

  /// Adds a watch that stands nowhere.
  func add(_ watch: Watch) {
    precondition(watch.queuedRevision == from, "the delta does not fit the copy of the watcher")
    receivers.add(watch, as: .awaiting)
  }

  /// Removes a receiver. O(1).
  func remove(_ watch: Watch) { receivers.take(watch) }

  /// Traps in a debug build unless each receiver is at its position. O(receivers).
  func checkInvariants() {
    #if DEBUG
      receivers.checkInvariants(.awaiting)
      assert(receivers.allSatisfy { !$0.isLive && $0.queuedRevision == from })
    #endif
  }
}

/// Deltas with many rows.
extension Engine {
  /// Whether the delta of a commit is encoded in parts.
  @inline(__always)
  func isLong(_ change: borrowing Change, of channel: FeedChannel) -> Bool {
    commit.long.isAnnounced && change.size > (longWork.isEager ? 0 : LongDelta.fewRows) && !channel.isCounting
      && !channel.feed.isGone
  }

  /// Lets all live watches wait for a delta with many rows. A watch that is not told now falls behind.
  func tellInParts(_ channel: FeedChannel, _ change: borrowing Change, _ publication: Publication) {
    if channel.live.isEmpty { return }
    let change = copy change
    for watch in channel.live {
      giveRest(watch)
      switch watch.seat {
      case .inStep: watch.queuedRevision = publication.from
      case .solo where watch.throttle == 0 || now >= watch.nextDelta: break
      case .solo:
        fallBehind(watch)
        continue
      default: continue
      }
      watches.await(watch) { LongDelta(of: channel, from: watch.queuedRevision, .published(change, publication)) }
    }
  }

  public func didPublish() {
    while let delta = watches.longDeltas.first {
      if !delta.receivers.isEmpty { encode(delta) }
      watches.removeFirstDelta()
    }
  }

  /// Encodes a delta and queues it for its receivers. Others work between two steps; receivers may leave meanwhile.
  private func encode(_ delta: LongDelta) {
    guard case .published(let change, _) = delta.content, let first = delta.receivers.first else { return }
    let frame = TurnBuffer()
    let state = LongDelta.State(for: first)
    if !isFarTooLarge(change, delta.channel.feed) { write(change, of: delta, state, to: frame, commit.pace) }
    deliver(delta, frame, revision: state.revision, commit.pace)
  }

  /// Writes a delta frame; nothing if it would be too long. Others work between two steps, and may change the feed.
  func write(_ change: Change, of delta: LongDelta, _ state: LongDelta.State, to buffer: TurnBuffer, _ pace: Pace) {
    let frame = beginDelta(in: buffer, delta.channel, from: delta.from, to: state.revision)
    switch state.content {
    case .counts(let counts):
      buffer.bytes.append(sectionsOf: change)
      counts.withUnsafeBytes { buffer.bytes.append($0) }
    case .rows(let added, let updated):
      buffer.bytes.reserve(limits.maxFrame)
      buffer.bytes.append(UInt8(ascii: ","))
      buffer.bytes.append(change) { pace.didWriteRows() }
      var rows = RowsWriter(withTypes: state.withTypes && !(change.added.isEmpty && change.updated.isEmpty))
      rows.begin(&buffer.bytes)
      append([(change.added, added), (change.updated, updated)], to: buffer, &rows, pace)
      rows.end(&buffer.bytes)
      if let identities = delta.channel.identities {
        let removed =
          switch delta.content {
          case .published: identities.removedLast
          case .missed:
            state.identities?.removed(by: change, from: delta.from, to: state.revision, in: delta.channel.feed, pace)
          }
        buffer.bytes.append(removed, end: Frame.headerLength + limits.maxFrame) { pace.didWriteRows() }
      }
    }
    let hint = if case .published(_, let publication) = delta.content { publication.hint } else { state.hint }
    if let hint { buffer.bytes.append(animation: hint) }
    _ = endDelta(in: buffer, frame, isEnd: state.isEnd)
  }

  /// Writes the elements of rows, until they do not fit a frame.
  private func append(
    _ lists: [(paths: [IndexPath], snapshot: FeedSnapshot)], to buffer: TurnBuffer, _ rows: inout RowsWriter,
    _ pace: Pace
  ) {
    let end = Frame.headerLength + limits.maxFrame
    var written = buffer.bytes.count
    for (paths, snapshot) in lists {
      for path in paths where buffer.bytes.count + rows.typesSize <= end {
        snapshot.skip(to: path) { pace.didSkipRows() }
        _ = snapshot.next(max: 1) { rows.append($0.text, type: $0.type, to: &buffer.bytes) }
        if rows.count & 63 > 0 { continue }
        pace.didWrite(bytes: buffer.bytes.count &- written)
        written = buffer.bytes.count
      }
    }
  }

  /// Queues an encoded delta for its receivers, which need a new snapshot if it is empty. Others work between two of them;
  /// receivers may leave meanwhile.
  func deliver(_ delta: LongDelta, _ frame: TurnBuffer, revision: UInt64, _ pace: Pace) {
    let block = SharedBlock(taking: &frame.bytes)
    while let watch = delta.receivers.first {
      watches.leaveSeat(watch)
      watch.progress = .behind
      if block.bytes.isEmpty {
        cutOff(watch)
      } else if !watch.session.output.exceeds(limits.maxQueue) {
        queue(watch.session, block, for: watch)
        didTell(watch, revision)
        becomeLive(watch)
      }
      if watch.seat == .standing { wait(watch) }
      pace.didWrite(bytes: 0)
    }
  }
}

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
  init(_ runner: (any SliceRunner)? = nil) { stack = ReadStack(runner) }

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
