/// How far a watcher is in the history of its feed, and what may come next: the order of messages that the protocol
/// promises (section 7), checked without looking at rows.
public struct WatchProgress: Equatable, Sendable {
  private enum Phase: Equatable, Sendable {
    /// A snapshot must come; `revision` is known from the second part on.
    case snapshot(revision: UInt64?)
    case live
  }

  public private(set) var epoch: String
  /// The last revision whose rows the watcher has; while a first snapshot is under way, the one it will have.
  public private(set) var revision: UInt64
  /// The feed is known not to have changed between `revision` and this.
  public private(set) var current: UInt64
  private var phase: Phase
  /// The last complete state before the snapshot under way began.
  private var complete: State?

  /// A state of the rows: that of `revision`, which is also that of every revision up to `current`.
  private struct State: Equatable, Sendable {
    var epoch: String
    var revision: UInt64
    var current: UInt64
  }

  /// The progress of a watch that has just been answered.
  /// - Parameters:
  ///   - since: what was asked for; a resumed watch goes on from there.
  ///   - initial: whether a snapshot was asked for.
  public init(_ start: WatchStart, since: FeedPosition?, initial: Bool) {
    epoch = start.epoch
    complete = since.map { State(epoch: $0.epoch, revision: $0.revision, current: $0.revision) }
    if start.resumed, let since {
      revision = since.revision
      current = since.revision
      phase = .live
    } else {
      revision = start.revision
      current = start.revision
      phase = initial ? .snapshot(revision: nil) : .live
    }
  }

  /// Goes on with another watch that was asked for with `since` of ``position``.
  public mutating func restart(_ start: WatchStart, initial: Bool) {
    let before = lastComplete
    self = WatchProgress(start, since: position, initial: initial)
    complete = before
    guard start.resumed, let before, before.epoch == start.epoch else { return }
    (revision, current) = (before.revision, before.current)
  }

  private var lastComplete: State? {
    phase == .live ? State(epoch: epoch, revision: revision, current: current) : complete
  }

  /// Where a later watch may go on: the last complete state. nil before there is one.
  public var position: FeedPosition? {
    lastComplete.map { FeedPosition(epoch: $0.epoch, revision: $0.current) }
  }

  /// Whether everything up to ``revision`` is there: no snapshot is under way.
  public var isLive: Bool { phase == .live }

  /// Whether the rows the watcher has are those of the daemon's `revision`.
  public func holds(at revision: UInt64) -> Bool {
    isLive && self.revision <= revision && revision <= current
  }

  /// Takes a part of a snapshot into account.
  public mutating func take(snapshot revision: UInt64, isReset: Bool, isLast: Bool) throws(FeedFault) {
    if isReset {
      complete = lastComplete
    } else {
      switch phase {
      case .live: throw .unexpectedSnapshot(revision: revision)
      case .snapshot(let first?) where first != revision: throw .mixedSnapshot(expected: first, found: revision)
      case .snapshot: break
      }
    }
    (self.revision, current) = (revision, revision)
    phase = isLast ? .live : .snapshot(revision: revision)
  }

  /// Takes a delta into account.
  public mutating func take(deltaFrom from: UInt64, to revision: UInt64) throws(FeedFault) {
    guard isLive else { throw .deltaInsideSnapshot(revision: revision) }
    guard holds(at: from) else { throw .gap(expected: self.revision, found: from) }
    guard revision > from else { throw .backwards(from: from, revision: revision) }
    (self.revision, current) = (revision, revision)
  }

  /// Takes a bookmark into account.
  public mutating func take(_ bookmark: Bookmark) throws(FeedFault) {
    guard bookmark.epoch == epoch else { throw .foreign("epoch \(bookmark.epoch)") }
    // A bookmark inside a snapshot says nothing that the snapshot will not.
    guard isLive else { return }
    guard bookmark.revision <= current, bookmark.current >= current else {
      throw .gap(expected: current, found: bookmark.revision)
    }
    current = bookmark.current
  }
}
