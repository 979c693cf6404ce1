import FeedChange
import FeedJSON
import FeedModel

/// Deltas with the identities of deleted rows (Protocol/README.md, "Identities").
extension Engine {
  /// Begins to read the identities of the feed of a watch, if the watch gets them. A watch of a long feed is not live before
  /// they are read.
  func beginIdentities(_ watch: Watch) {
    guard let identities = watch.channel.identities else { return }
    watches.idleIdentities.didBegin(watch)
    let rows = identities.begin(fewRows: watches.catchUps.fewRows, chargedTo: watch.session.snapshots)
    outbox.shares.add(work: rows / Self.identitiesPerUnit, of: watch.session.peer.uid)
    if identities.payers.add(watch) { charge(identities) }
    if watch.isLive && identities.isReading { fallBehind(watch) }
  }

  /// The identities that are read in a unit of work.
  private static let identitiesPerUnit = 4

  /// Charges each user with the present memory of the identities.
  func charge(_ identities: FeedIdentities) {
    identities.didCharge()
    for watch in identities.payers.all { watch.charge.share = watch.session.snapshots.hold(identities.bytes) }
  }

  /// Follows a commit, and tells the watches of a feed that get identities.
  func tellIdentities(_ channel: FeedChannel, _ change: borrowing Change, _ publication: Publication) {
    guard let identities = channel.identities else { return }
    identities.didChange(by: change, from: publication.from, bytes: limits.historyBytes, commit.pace)
    if channel.watchCount == 0 { return watches.idleIdentities.didChange(channel, at: now, limits) }
    tell(channel, change, publication)
    // Afterwards: the history of a feed that took the place of another one does not reach to before its first change.
    refresh(identities)
  }

  /// Discards identities that nobody can ask for any more, and charges for what is left if that is much more or less than before.
  /// Called when the feed changes, and at times while it does not.
  func refresh(_ identities: FeedIdentities) {
    identities.trimToHistory()
    if identities.isChargedWrong { charge(identities) }
  }

  /// Reads the identities of a long feed for the receivers of a delta. Others work between two steps, and may change the feed.
  func readIdentities(_ delta: LongDelta, _ pace: Pace) {
    let channel = delta.channel
    channel.identities?.read(pace) { from in
      channel.feed.isGone ? nil : channel.change(from: from, to: channel.feed.revision)
    }
  }

  /// Lets the receivers of a delta go on, because they missed nothing.
  func release(_ delta: LongDelta) {
    // Their memory was estimated until they were read.
    if let identities = delta.channel.identities { charge(identities) }
    while let watch = delta.receivers.first {
      watches.leaveSeat(watch)
      becomeLive(watch)
      if watch.seat == .standing { wait(watch) }
    }
  }
}

/// Watches for which something is there once, so that each user pays for it through one of them. Each operation is O(1).
///
/// Invariant: none of the watches has ended, and each knows its place among those of its user. The first of these pays.
final class Payers {
  private var watches: [UInt32: [Watch]] = [:]

  /// The watches that pay. O(users).
  var all: some Sequence<Watch> { watches.values.lazy.compactMap(\.first) }

  /// Adds a watch, which leaves others. Returns whether it pays.
  func add(_ watch: Watch) -> Bool {
    let place = watches[watch.session.peer.uid]?.count ?? 0
    watches[watch.session.peer.uid, default: []].append(watch)
    watch.charge = Watch.Charge(payers: self, place: place)
    return place == 0
  }

  /// Removes a watch, which ends. Returns the one that must pay instead; nil if it did not pay, or if its user has no other.
  func remove(_ watch: Watch) -> Watch? {
    let uid = watch.session.peer.uid
    guard var left = watches.removeValue(forKey: uid) else { preconditionFailure("the watch is not among the payers") }
    let place = watch.charge.place
    precondition(left[place] === watch, "a watch is at its place")
    watch.charge = Watch.Charge()
    let last = left.removeLast()
    if last !== watch {
      last.charge.place = place
      left[place] = last
    }
    if left.isEmpty { return nil }
    defer { watches[uid] = left }
    return place == 0 ? left[0] : nil
  }
}

/// The identities of feeds that no watch asks for any more, kept so that a watch that resumes is told what left meanwhile.
///
/// Invariant: none of the channels has watches, and none of their feeds is gone.
struct IdleIdentities {
  /// The most channels, and the most memory of the identities of one.
  private static let mostChannels = 16
  private static let mostBytes = 4 << 20

  /// The channels, the one without watches for the longest time first.
  private var channels: [(channel: FeedChannel, since: Instant)] = []

  mutating func didBegin(_ watch: Watch) { channels.removeAll { $0.channel === watch.channel } }

  /// Records that a watch ended.
  mutating func didEnd(_ watch: Watch, at now: Instant) {
    guard let identities = watch.channel.identities, watch.channel.watchCount == 0 else { return }
    if !identities.isReady || identities.bytes > Self.mostBytes { return identities.forget() }
    channels.append((watch.channel, now))
    if channels.count > Self.mostChannels { channels.removeFirst().channel.identities?.forget() }
  }

  /// Records that the feed of a channel without watches changed.
  mutating func didChange(_ channel: FeedChannel, at now: Instant, _ limits: Limits) {
    guard let place = channels.firstIndex(where: { $0.channel === channel }), let identities = channel.identities else {
      return
    }
    let age = now.since(channels[place].since)
    // Those of a feed that was undefined are forgotten: its channel would keep the feed with all its elements.
    let isOld = age > UInt64(limits.historySeconds) * 1_000_000_000
    guard identities.isForgotten || identities.bytes > Self.mostBytes || isOld else { return }
    identities.forget()
    channels.remove(at: place)
  }
}

extension ByteBuffer {
  /// Appends `,"deletedIDs":…` and, if sections were deleted, `,"deletedSectionIDs":…`; null if they are not known. Stops early
  /// if the frame would not end before `end`; the frame is then discarded.
  /// - Parameter step: called after about each thousand identities.
  mutating func append(_ removed: RowIdentities.Removed?, end: Int, step: () -> Void = {}) {
    append(",\"deletedIDs\":")
    guard let removed else { return append("null") }
    append(removed.rows, end, step)
    if removed.sections.isEmpty { return }
    append(",\"deletedSectionIDs\":[")
    for (place, section) in removed.sections.enumerated() where count <= end {
      if place > 0 { append(UInt8(ascii: ",")) }
      append(section, end, step)
    }
    append(UInt8(ascii: "]"))
  }

  private mutating func append(_ identities: [String?], _ end: Int, _ step: () -> Void) {
    append(UInt8(ascii: "["))
    for (place, identity) in identities.enumerated() where count <= end {
      if place > 0 { append(UInt8(ascii: ",")) }
      if let identity { append(string: identity) } else { append("null") }
      if place & 1023 == 1023 { step() }
    }
    append(UInt8(ascii: "]"))
  }
}

/// The identities of the rows of a feed at one revision, by position: JSON texts, and nil for rows that have none.
///
/// A value, so that a copy can go back to an earlier revision while the original follows the feed. Rows are in chunks that
/// copies share until one of them changes.
///
///     let removed = rows.apply(change) { path in feed.element(at: path).identityText }
///     rows.undo(change, removed)
struct RowIdentities {
  /// The rows that a change removes from their places: those of `Change.deleted`, and those of each section of
  /// `Change.sectionsDeleted`.
  struct Removed {
    var rows: [String?] = []
    var sections: [[String?]] = []

    /// The memory in bytes.
    var bytes: Int {
      rows.reduce(0) { $0 + RowIdentities.bytes(of: $1) }
        + sections.reduce(0) { $0 + $1.reduce(32) { $0 + RowIdentities.bytes(of: $1) } }
    }
  }

  private var sections: [ChunkedList<String?>] = []
  /// The memory in bytes.
  private(set) var bytes = 0

  /// The memory of one row: short texts are held in place.
  private static func bytes(of text: String?) -> Int {
    let length = text?.utf8.count ?? 0
    return 16 + (length > 15 ? 32 + length : 0)
  }

  // MARK: Reading a feed

  mutating func appendSection() { sections.append(ChunkedList()) }

  mutating func append(_ rows: [String?]) {
    bytes += rows.reduce(0) { $0 + Self.bytes(of: $1) }
    sections[sections.count - 1].append(contentsOf: rows)
  }

  // MARK: Changes

  /// The rows that a change, which fits, would remove.
  func removed(by change: borrowing Change) -> Removed {
    var removed = Removed()
    if !change.deleted.isEmpty {
      removed.rows.reserveCapacity(change.deleted.count)
      for run in change.deleted.runsOfSections() {
        removed.rows += sections[run.section].elements(at: change.deleted[run.places].lazy.map { Int($0.row) })
      }
    }
    for section in change.sectionsDeleted { removed.sections.append(Array(sections[Int(section)])) }
    return removed
  }

  /// Follows a change of the feed. Returns the rows that it removed.
  /// - Parameters:
  ///   - step: called after about each thousand rows.
  ///   - identity: returns the identity of a row after the change.
  mutating func apply(
    _ change: borrowing Change, step: () -> Void = {}, identity: (IndexPath) -> String?
  ) -> Removed {
    let removed = removed(by: change)
    bytes -= removed.bytes - 32 * removed.sections.count
    for run in change.deleted.runsOfSections() {
      sections[run.section].remove(change.deleted[run.places].lazy.map { Int($0.row) })
    }
    if !change.hasSameSections { change.applySections(to: &sections) { _ in ChunkedList() } }
    for run in change.added.runsOfSections() {
      let rows = change.added[run.places].enumerated().map { place, path in
        if place & 1023 == 1023 { step() }
        return identity(path)
      }
      bytes += rows.reduce(0) { $0 + Self.bytes(of: $1) }
      sections[run.section].insert(rows, at: change.added[run.places].lazy.map { Int($0.row) })
    }
    for run in change.updated.runsOfSections() {
      let places = change.updated[run.places].lazy.map { Int($0.row) }
      let before = sections[run.section].elements(at: places)
      let after = change.updated[run.places].enumerated().map { place, path in
        if place & 1023 == 1023 { step() }
        return identity(path)
      }
      if before == after { continue }
      bytes += after.reduce(0) { $0 + Self.bytes(of: $1) } - before.reduce(0) { $0 + Self.bytes(of: $1) }
      sections[run.section].replace(places, with: after)
    }
    return removed
  }

  /// Goes back to the rows before a change, except for the identities of rows that it updated.
  /// - Parameter removed: the rows that the change removed.
  mutating func undo(_ change: Change, _ removed: Removed) {
    for run in change.added.runsOfSections() {
      sections[run.section].remove(change.added[run.places].lazy.map { Int($0.row) })
    }
    for addition in change.sectionsAdded.reversed() { sections.remove(at: Int(addition.at)) }
    for (place, section) in change.sectionsDeleted.enumerated() {
      var rows = ChunkedList<String?>()
      rows.append(contentsOf: removed.sections[place])
      sections.insert(rows, at: Int(section))
    }
    for run in change.deleted.runsOfSections() {
      sections[run.section].insert(removed.rows[run.places], at: change.deleted[run.places].lazy.map { Int($0.row) })
    }
  }
}
