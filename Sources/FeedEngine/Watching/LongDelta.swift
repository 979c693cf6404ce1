import FeedChange
import FeedJSON
import FeedModel

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
    /// The change of one commit.
    case published(Change, Publication)
    /// The changes since `from`.
    case missed
  }

  let channel: FeedChannel
  /// The revision of the watchers' copies before the delta.
  let from: UInt64
  let content: Content
  private(set) var receivers: [Watch] = []

  init(of channel: FeedChannel, from: UInt64, _ content: Content) {
    self.channel = channel
    self.from = from
    self.content = content
  }

  /// Adds a watch that stands nowhere.
  func add(_ watch: Watch) {
    precondition(watch.seat == .standing && watch.queuedRevision == from, "a watch is in one list")
    watch.seat = .awaiting
    watch.place = receivers.count
    receivers.append(watch)
  }

  /// Removes a receiver. O(1).
  func remove(_ watch: Watch) {
    precondition(watch.seat == .awaiting && receivers[watch.place] === watch, "the watch does not wait for this delta")
    let last = receivers.removeLast()
    if last !== watch {
      last.place = watch.place
      receivers[watch.place] = last
    }
    watch.seat = .standing
  }

  /// Traps in a debug build unless each receiver is at its position. O(receivers).
  func checkInvariants() {
    #if DEBUG
      for (place, watch) in receivers.enumerated() {
        assert(watch.seat == .awaiting && watch.place == place && !watch.isLive && watch.queuedRevision == from)
      }
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
    guard case .published(let change, let publication) = delta.content else { return }
    let frame = TurnBuffer()
    _ = appendDelta(to: frame, delta.channel, from: delta.from, change, publication, commit.pace)
    deliver(delta, frame, revision: delta.channel.feed.revision, commit.pace)
  }

  /// Queues an encoded delta for its receivers, which need a new snapshot if it is empty. Others work between two of them;
  /// receivers may leave meanwhile.
  func deliver(_ delta: LongDelta, _ frame: TurnBuffer, revision: UInt64, _ pace: Pace) {
    let block = SharedBlock(taking: &frame.bytes)
    while let watch = delta.receivers.first {
      watches.leaveSeat(watch)
      watch.progress = .behind
      if block.bytes.isEmpty {
        restart(watch)
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
