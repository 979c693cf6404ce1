import FeedJSON
import FeedModel
import FeedWire

/// What was discarded of the output for one watch.
private struct DiscardedFrames {
  private enum Start {
    /// Nothing but bookmarks and selections.
    case notes
    /// The first delta, from this revision.
    case delta(from: UInt64)
    case snapshotPart
  }

  private var start = Start.notes
  private var hasSnapshotPart = false
  private var hasSelection = false

  private static let snapshot = head(of: "snapshot")
  private static let selection = head(of: "selection")

  private static func head(of method: StaticString) -> [UInt8] {
    var head = ByteBuffer()
    head.beginNotification(method)
    return Array(head.bytes)
  }

  mutating func add(_ frame: UnsafeRawBufferPointer, of channel: FeedChannel) {
    if let revision = channel.origin(ofDelta: frame) {
      if case .notes = start { start = .delta(from: revision) }
    } else if frame.starts(with: Self.snapshot) {
      if case .notes = start { start = .snapshotPart }
      hasSnapshotPart = true
    } else if frame.starts(with: Self.selection) {
      hasSelection = true
    }
  }

  /// Sets the watch back to what its watcher will have read. Returns whether the watch must catch up.
  func setBack(_ watch: Watch) -> Bool {
    watch.told.revision = 0
    if hasSelection { watch.told.selection = watch.channel.selectionVersion &- 1 }
    // The parts of a snapshot that are not made yet replace the deltas before it.
    if case .snapshot = watch.progress, !hasSnapshotPart { return false }
    switch start {
    case .notes: return hasSelection && watch.isLive
    case .delta(let revision): watch.queuedRevision = revision
    case .snapshotPart: return true
    }
    return true
  }

  /// Whether the watcher needs another snapshot.
  var isCutOff: Bool { if case .snapshotPart = start { true } else { false } }
}

/// Output of watches that is discarded, because their user holds too much. They catch up later.
extension Engine {
  /// Discards the output for the watches of a user's connections, the longest first, until the user is within the quota: deltas,
  /// and only if these are not enough, snapshots. O(connections log connections + frames discarded).
  func discardWatchOutput(of uid: UInt32) {
    var holders = sessions.all.filter { $0.peer.uid == uid && !$0.watches.isEmpty && $0.output.count > 0 }
    holders.sort { $0.output.count + $0.snapshots.bytes > $1.output.count + $1.snapshots.bytes }
    for withSnapshots in [false, true] {
      for session in holders {
        if sessions.quotas.bytes(of: uid) <= limits.maxQueuePerUser { return }
        discard(of: session, withSnapshots: withSnapshots)
        recount(session)
      }
    }
  }

  /// Discards the output for the watches of a connection, except pinned frames and the rest of one that its peer has begun to
  /// read. With snapshots, ends those for a peer that does not read.
  private func discard(of session: Session, withSnapshots: Bool) {
    let concerned = session.watches.filter { withSnapshots || !$0.isSnapshotting }
    let watches = Dictionary(uniqueKeysWithValues: concerned.map { ($0.number, $0.channel) })
    var discarded: [UInt32: DiscardedFrames] = [:]
    session.output.drop(where: { watches[$0] != nil }) { number, frame in
      guard let channel = watches[number] else { return }
      discarded[number, default: DiscardedFrames()].add(frame, of: channel)
    }
    for watch in concerned {
      let frames = discarded[watch.number]
      let mustCatchUp = frames?.setBack(watch) ?? false
      if frames?.isCutOff == true && mustCatchUp || watch.isSnapshotting && session.output.isBlocked {
        leave(watch, for: .cutOff(because: "its snapshot was discarded for the limit maxQueuePerUser"))
      } else if mustCatchUp {
        leave(watch, for: .behind)
      }
    }
  }

  /// Lets a watch that cannot go on where it is wait for room on its connection.
  private func leave(_ watch: Watch, for progress: Watch.Progress) {
    watches.leaveSeat(watch)
    watch.progress = progress
    wait(watch)
  }
}
