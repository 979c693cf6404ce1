import FeedChange
import FeedJSON
import FeedWire

/// The revision of a watcher's copy, and the messages that may follow (`Protocol/README.md`, "Watching").
///
/// Invariant: `current` is at least `revision`, and the feed did not change between them.
public struct WatchProgress: Equatable, Sendable {
  private enum Phase: Equatable, Sendable {
    /// A snapshot is expected; `revision` is that of its first part.
    case snapshot(revision: UInt64?)
    case live
  }

  public private(set) var epoch: String
  /// The revision of the rows; while the first snapshot is being received, the revision that they will have.
  public private(set) var revision: UInt64
  /// The last revision up to which the feed is known to be unchanged since ``revision``.
  public private(set) var current: UInt64
  private var phase: Phase
  /// The last complete state before the snapshot that is being received.
  private var complete: State?

  /// A state of the rows, valid from `revision` to `current`.
  private struct State: Equatable, Sendable {
    var epoch: String
    var revision: UInt64
    var current: UInt64
  }

  /// Creates the progress of a new watch.
  /// - Parameters:
  ///   - since: the requested position; a resumed watch continues from there.
  ///   - initial: whether a snapshot was requested.
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

  /// Continues with another watch, which was requested with `since` at ``position``.
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

  /// The position from which a later watch can resume: the last complete state; nil before the first.
  public var position: FeedPosition? { lastComplete.map { FeedPosition(epoch: $0.epoch, revision: $0.current) } }

  /// Whether the copy is complete and no snapshot is expected.
  public var isLive: Bool { phase == .live }

  /// Whether the copy equals the feed at `revision`.
  public func holds(at revision: UInt64) -> Bool { isLive && self.revision <= revision && revision <= current }

  /// Records a part of a snapshot.
  public mutating func record(snapshot revision: UInt64, isReset: Bool, isLast: Bool) throws(FeedFault) {
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

  /// Records a delta.
  public mutating func record(deltaFrom from: UInt64, to revision: UInt64) throws(FeedFault) {
    guard isLive else { throw .deltaInsideSnapshot(revision: revision) }
    guard holds(at: from) else { throw .gap(expected: self.revision, found: from) }
    guard revision > from else { throw .backwards(from: from, revision: revision) }
    (self.revision, current) = (revision, revision)
  }

  /// Records a bookmark.
  public mutating func record(_ bookmark: Bookmark) throws(FeedFault) {
    guard bookmark.epoch == epoch else { throw .foreign("epoch \(bookmark.epoch)") }
    // A bookmark during a snapshot has no effect.
    guard isLive else { return }
    guard bookmark.revision <= current, bookmark.current >= current else {
      throw .gap(expected: current, found: bookmark.revision)
    }
    current = bookmark.current
  }
}

/// The number of rows of each section of a feed, kept up to date by a watch without elements.
///
/// Invariant: `sections` are those of the feed at `revision`.
public struct FeedCounts: Equatable, Sendable {
  /// The sections with their numbers of rows, in order.
  public private(set) var sections: [SectionSummary]
  public private(set) var revision: UInt64

  /// The number of rows of all sections.
  public var total: Int { sections.reduce(0) { $0 + $1.count } }

  /// Creates the counts at the start of a watch.
  public init(_ start: WatchStart) {
    sections = start.sections
    revision = start.revision
  }

  /// Applies the `params` of a `delta`, or of a `snapshot` that resets the watch. Ignores a revision that the counts
  /// already have, such as that of the first delta of a resumed watch.
  mutating func apply(_ params: JSONView) throws(MalformedMessage) {
    let reader = MemberReader(object: params, place: "delta")
    let revision = try reader.revision("revision")
    guard revision > self.revision || reader.flag("reset") else { return }
    var changed = sections
    if reader.flag("reset") {
      changed = try reader.sections("sections")
    } else {
      let structure = try Change(sectionsOf: params)
      guard structure.sectionsFit(changed.count) else {
        throw MalformedMessage("delta: \"sections\" does not fit \(counted(changed.count, "section"))")
      }
      structure.applySections(to: &changed) { SectionSummary(name: $0.name, key: $0.key, count: 0) }
      let counts = try reader.counts("counts")
      guard counts.count == changed.count else {
        throw MalformedMessage(
          "delta: \"counts\" has \(counted(counts.count, "number")) for \(counted(changed.count, "section"))")
      }
      for (place, count) in counts.enumerated() { changed[place].count = count }
    }
    (sections, self.revision) = (changed, revision)
  }
}

extension Change {
  /// Whether the deleted and added sections are valid in a feed of `count` sections.
  package func sectionsFit(_ count: Int) -> Bool {
    guard sectionsDeleted.allSatisfy({ $0 < UInt32(clamping: count) }),
      zip(sectionsDeleted, sectionsDeleted.dropFirst()).allSatisfy(<)
    else { return false }
    let left = count - sectionsDeleted.count
    return sectionsAdded.enumerated().allSatisfy { $1.at <= UInt32(clamping: left + $0) }
  }
}
