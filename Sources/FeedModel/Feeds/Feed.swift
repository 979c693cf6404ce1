import FeedChange

/// Identifies a feed or bin in its catalog. Small; used again after the feed is gone.
public typealias FeedNumber = Int

/// An ordered list of named sections of rows, which has a name and can be watched.
///
/// A feed owns what all kinds share: its revision, recent changes, selection and definition. Its ``kind`` owns the rows or
/// knows whose rows it shows. Guarded by the engine's thread.
public final class Feed {
  /// The name of the feed, or `collection/bin`.
  public let name: String
  public let number: FeedNumber
  public let kind: any FeedKind
  /// ``kind`` if it derives its rows from other feeds. Kept because the cast is slow.
  let derived: (any DerivedKind)?
  /// ``kind`` if it is a collection. Kept because a cast or a call through the protocol is slow.
  public let collection: CollectionKind?

  /// The revision of the last commit that changed this feed.
  public private(set) var revision: UInt64
  /// Recent changes; nil until the feed is watched for the first time.
  public private(set) var history: History?
  /// The selected rows, ascending, as of the last commit.
  public private(set) var selection: [IndexPath] = []
  /// What may be done with the rows.
  public private(set) var behaviours = Behaviours()
  /// The definition as given last. Other methods may have changed children and the active one since.
  public private(set) var given: FeedDefinition?
  /// Whether the feed was undefined. It has no sections then.
  public private(set) var isGone = false
  /// What the observer of commits keeps for this feed. The model only stores it.
  public var channel: AnyObject?

  init(name: String, number: FeedNumber, kind: any FeedKind, revision: UInt64) {
    self.name = name
    self.number = number
    self.kind = kind
    derived = kind as? any DerivedKind
    collection = kind as? CollectionKind
    self.revision = revision
  }

  /// The name of the kind in requests and answers; `bin` for a bin of a collection.
  public var kindName: String { kind.wireName }

  /// What `define` would have to be given to make this feed; nil for a bin, which its collection defines.
  public var definition: FeedDefinition? {
    kind.definedAs.map { FeedDefinition(name: name, content: $0, behaviours: behaviours) }
  }

  /// The feeds and bins whose rows this feed shows.
  public var shownFeeds: [Feed] { derived?.sources.map(\.feed) ?? [] }

  // MARK: Rows

  public var sectionCount: Int { isGone ? 0 : kind.sectionCount }

  /// The section at an index in `0..<sectionCount`.
  public func section(at index: Int) -> any FeedSection {
    assert(!isGone, "a feed that is gone has no sections")
    return kind.section(at: index)
  }

  /// An existing row. O(log n).
  public func row(at path: IndexPath) -> Row { section(at: Int(path.section)).row(at: Int(path.row)) }

  /// The element of an existing row. O(log n).
  public func element(at path: IndexPath) -> ElementText {
    if let collection { return collection.element(at: path) }
    return kind.element(at: path)
  }

  /// The type of an existing row as a JSON string; empty if it has none. O(log n).
  public func type(at path: IndexPath) -> UnsafeRawBufferPointer { kind.type(at: path) }

  /// The rows of all sections. O(sections).
  public var count: Int {
    (0..<sectionCount).reduce(0) { $0 &+ section(at: $1).count }
  }

  /// Whether rows may have a type.
  public var hasTypes: Bool { !isGone && kind.hasTypes }

  /// The present content, to be read in parts while the feed goes on changing. O(rows / 100).
  public func makeSnapshot() -> FeedSnapshot {
    FeedSnapshot(sections: (0..<sectionCount).map { section(at: $0).makeSnapshot() }, revision: revision)
  }

  /// The path of an existing row.
  ///
  /// - Throws: `indexOutOfRange`, also for negative numbers.
  public func path(section index: Int, row: Int) throws(FeedError) -> IndexPath {
    guard (0..<sectionCount).contains(index) else {
      throw .indexOutOfRange(feed: name, index: index, count: sectionCount, what: "section")
    }
    let count = section(at: index).count
    guard (0..<count).contains(row) else {
      throw .indexOutOfRange(feed: name, index: row, count: count, what: "row")
    }
    return IndexPath(section: UInt32(index), row: UInt32(row))
  }

  // MARK: Changes

  /// Whether changes of this feed are recorded, because it is watched or was.
  public var isObserved: Bool { history != nil }

  /// Whether the observer of commits is told of changes of this feed.
  var isWatched: Bool { channel != nil }

  /// Begins to keep recent changes, so that a watcher that falls behind or comes back can catch up.
  public func beginHistory() {
    if history == nil { history = History(base: revision) }
  }

  /// Notes that a commit changed the feed, with sections shifted by `shift`, and records the change. Returns whether a history
  /// is kept.
  ///
  /// - Parameter change: only read; `inout` so that no reference to its lists is counted.
  @inline(__always)
  func record(_ change: inout Change, shift: UInt32, revision: UInt64, at moment: Instant) -> Bool {
    self.revision = revision
    return history?.append(&change, shift: shift, to: revision, at: moment) != nil
  }

  /// Notes the revision of a commit whose change of this feed concerns nobody.
  func skip(to revision: UInt64) { self.revision = revision }

  /// Forgets what watchers could know: nobody can catch up across this revision.
  func forgetPast(at revision: UInt64) {
    self.revision = revision
    selection = []
    history?.restart(at: revision)
  }

  // MARK: Definition

  /// Sets what the definition says besides the content. Returns what was set before, to undo it.
  @discardableResult
  func adopt(_ behaviours: Behaviours, given: FeedDefinition?) -> (behaviours: Behaviours, given: FeedDefinition?) {
    let former = (self.behaviours, self.given)
    self.behaviours = behaviours
    self.given = given
    return former
  }

  /// Marks the feed as undefined, or undoes that.
  func setGone(_ isGone: Bool) { self.isGone = isGone }

  /// Takes up what an image stored.
  func restore(revision: UInt64, selection: [IndexPath], given: FeedDefinition) {
    history?.restart(at: revision)
    self.revision = revision
    self.selection = selection
    self.given = given
  }

  func restore(revision: UInt64) { self.revision = revision }
  func restore(_ history: History) { self.history = history }

  /// Replaces the selection. Returns whether it is different from before.
  func setSelection(_ paths: [IndexPath]) -> Bool {
    assert(zip(paths, paths.dropFirst()).allSatisfy(<), "selected rows are not ascending")
    if paths == selection { return false }
    selection = paths
    return true
  }
}
