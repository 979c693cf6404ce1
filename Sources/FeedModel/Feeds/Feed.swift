import FeedChange

/// Identifies a feed or bin in its catalog. Numbers are small and are reused after the feed is removed.
public typealias FeedNumber = Int

/// A named, ordered list of sections of rows that can be read and watched.
///
/// A feed owns the state that all kinds share: its revision, history, selection and definition. Its ``kind`` owns the
/// rows, or knows the feeds whose rows it shows. Only the engine's thread may use it.
public final class Feed {
  /// The name of the feed, or `collection/bin`.
  public let name: String
  public let number: FeedNumber
  public let kind: any FeedKind
  /// ``kind`` if it derives its rows from other feeds. Stored because the cast is slow.
  let derived: (any DerivedKind)?
  /// ``kind`` if it is a collection, without a count of references: `kind` keeps it alive. Kept because each update needs it,
  /// and a cast, a call through the protocol or a reference count is slow. Not private, because ``withCollection`` is inlined.
  @usableFromInline let unretainedCollection: Unmanaged<CollectionKind>?

  /// The revision of the last commit that changed this feed.
  public private(set) var revision: UInt64
  /// The history, retained once until the feed is freed. Each commit uses it: to count a reference then is slow.
  private var retainedHistory: Unmanaged<History>?
  /// The selected rows, ascending, as of the last commit.
  public private(set) var selection: [IndexPath] = []
  /// The operations that are allowed on the rows. For a bin, those of its collection.
  public private(set) var behaviours = Behaviours()
  /// The last definition that was given. Since then, other methods may have changed the children or the active child.
  public private(set) var given: FeedDefinition?
  private var charge = DefinitionCharge()
  /// Whether the feed was undefined. It then has no sections.
  public private(set) var isGone = false
  /// State that the commit observer keeps for this feed; nil if the feed is not watched. The model only stores it.
  public var channel: AnyObject? { didSet { unretainedChannel = channel.map { .passUnretained($0) } } }
  /// ``channel``, without a count of references.
  public private(set) var unretainedChannel: Unmanaged<AnyObject>?

  init(name: String, number: FeedNumber, kind: any FeedKind, revision: UInt64) {
    (self.name, self.number, self.kind) = (name, number, kind)
    derived = kind as? any DerivedKind
    unretainedCollection = (kind as? CollectionKind).map { .passUnretained($0) }
    self.revision = revision
  }

  deinit { retainedHistory?.release() }

  public var collection: CollectionKind? { unretainedCollection?.takeUnretainedValue() }

  /// Calls `body` with ``kind`` if it is a collection; returns nil otherwise. Counts no reference.
  @inlinable @inline(__always)
  public func withCollection<R>(_ body: (CollectionKind) -> R) -> R? {
    guard let unretainedCollection else { return nil }
    return unretainedCollection._withUnsafeGuaranteedRef(body)
  }

  /// Derives the change of a feed that shows others; see ``DerivedKind/derive(_:into:)``. A call, because the optimizer counts
  /// a reference to ``derived`` elsewhere.
  @inline(never)
  func derive(_ changes: borrowing SourceChanges, into change: inout Change) { derived?.derive(changes, into: &change) }

  /// The name of the kind in requests and answers; `bin` for a bin of a collection.
  public var kindName: String { kind.wireName }

  /// The definition that would create this feed as it is now; nil for a bin, which its collection defines.
  public var definition: FeedDefinition? {
    kind.definedAs.map { FeedDefinition(name: name, content: $0, behaviours: behaviours) }
  }

  public var shownFeeds: [Feed] { derived?.sources.map(\.feed) ?? [] }

  /// Whether there may be such feeds and bins. O(1).
  public var showsFeeds: Bool { derived != nil }

  /// How a composed, segmented or slots feed shows a child.
  public enum ShownAs {
    /// The index of the first section of the child in this feed; nil if it is not shown.
    case section(Int?)
    case type(String)
  }

  /// How a composed, segmented or slots feed shows each of its children; nil for other kinds.
  public var shownChildren: [(feed: String, as: ShownAs)]? {
    switch kind {
    case let provider as ProviderKind:
      provider.sources.map { place, child in
        (child.name, .section(provider.shows(place) ? provider.offset(ofSectionsAt: place) : nil))
      }
    case let slots as SlotsKind:
      slots.contentTypes.map { ($0.feed, .type($0.type)) }
    default: nil
    }
  }

  // MARK: Rows

  public var sectionCount: Int { isGone ? 0 : kind.sectionCount }

  /// The section at an index in `0..<sectionCount`.
  public func section(at index: Int) -> any FeedSection {
    assert(!isGone, "a feed that is gone has no sections")
    return kind.section(at: index)
  }

  /// The element at the path of an existing row. O(log n).
  public func element(at path: IndexPath) -> ElementText {
    withCollection { $0.element(at: path) } ?? kind.element(at: path)
  }

  /// The type at the path of an existing row, as a JSON string; empty if it has none. O(log n).
  public func type(at path: IndexPath) -> UnsafeRawBufferPointer { kind.type(at: path) }

  /// All sections in order. O(sections + feeds shown), however deep these stand in each other.
  public var sections: [any FeedSection] {
    var sections: [any FeedSection] = []
    appendSections(to: &sections)
    return sections
  }

  private func appendSections(to sections: inout [any FeedSection]) {
    if isGone { return }
    if let provider = kind as? ProviderKind {
      for child in provider.shown { child.appendSections(to: &sections) }
    } else {
      for index in 0..<kind.sectionCount { sections.append(kind.section(at: index)) }
    }
  }

  /// Calls `body` with the name, as UTF-8, and the row count of each section. O(sections + feeds shown).
  public func forEachSection(_ body: (_ name: UnsafeRawBufferPointer, _ isByValue: Bool, _ count: Int) -> Void) {
    if isGone { return }
    if let provider = kind as? ProviderKind {
      for child in provider.shown { child.forEachSection(body) }
    } else if let keyed = kind.rows?.keyed {
      keyed.forEach { name, count in body(name, true, count) }
    } else {
      for index in 0..<kind.sectionCount {
        let section = kind.section(at: index)
        var name = section.name
        name.withUTF8 { body(UnsafeRawBufferPointer($0), section.isByValue, section.count) }
      }
    }
  }

  /// Calls `body` with the row count of each section in order. Finds no names, which takes most of the time of ``forEachSection(_:)``.
  /// O(sections + feeds shown).
  public func forEachCount(_ body: (_ count: Int) -> Void) {
    if isGone { return }
    if let provider = kind as? ProviderKind {
      for child in provider.shown { child.forEachCount(body) }
    } else if let keyed = kind.rows?.keyed {
      keyed.forEachCount(body)
    } else {
      for index in 0..<kind.sectionCount { body(kind.section(at: index).count) }
    }
  }

  /// The number of rows of all sections. O(bins), or O(children).
  public var count: Int { isGone ? 0 : kind.rowCount }

  /// The bytes of the elements of all rows. O(rows).
  func elementBytes(_ pace: Pace) -> Int {
    var bytes = 0
    forEachRow { row in
      bytes &+= row.text.count
      pace.spend()
    }
    return bytes
  }

  /// The row at an existing index of the rows in flattened order. O(bins + log n), or O(children + log n).
  func row(atFlat index: Int) -> Row {
    let (section, row) = kind.locate(index)
    return section.row(at: row)
  }

  /// The element at an existing index of the rows in flattened order. O(bins + log n), or O(children + log n).
  func element(atFlat index: Int) -> ElementText {
    let (section, row) = kind.locate(index)
    return section.element(at: row)
  }

  var sectionCounts: SectionCounts { SectionCounts((0..<sectionCount).map { section(at: $0).count }) }
  public var hasTypes: Bool { !isGone && kind.hasTypes }

  /// Returns a snapshot of the current content, which can be read in parts while the feed changes. O(rows / 100).
  /// - Parameter memory: what the memory of the snapshot is charged to; nil if that is not counted.
  public func makeSnapshot(chargedTo memory: SnapshotMemory? = nil) -> FeedSnapshot {
    let snapshot = FeedSnapshot(isGone ? [] : kind.makeSnapshots(), revision: revision)
    if let memory { snapshot.charge(to: memory) }
    return snapshot
  }

  /// Returns a snapshot of rows of one section, with them as its only section. O(log n + rows / 100).
  public func makeSnapshot(ofSection section: Int, rows: Range<Int>) -> FeedSnapshot {
    FeedSnapshot([SectionsSnapshot(self.section(at: section).makeSnapshot(of: rows))], revision: revision)
  }

  /// Returns a snapshot of rows in flattened order. O(sections + log n + rows / 100).
  func makeSnapshot(ofFlat rows: Range<Int>) -> FeedSnapshot {
    var parts: [SectionsSnapshot] = []
    appendSnapshots(ofFlat: rows, to: &parts)
    return FeedSnapshot(parts, revision: revision)
  }

  private func appendSnapshots(ofFlat rows: Range<Int>, to snapshots: inout [SectionsSnapshot]) {
    if isGone || rows.isEmpty { return }
    var start = 0
    let within = { (count: Int) in
      defer { start += count }
      return rows.clamped(to: start..<start + count).shifted(by: -start)
    }
    if let provider = kind as? ProviderKind {
      for child in provider.shown { child.appendSnapshots(ofFlat: within(child.count), to: &snapshots) }
    } else if let keyed = collection?.state.keyed {
      // One snapshot for all sections: each snapshot costs every later change of the rows.
      snapshots.append(SectionsSnapshot(keyed.flat.makeSnapshot(of: rows)))
    } else {
      for index in 0..<kind.sectionCount {
        let section = kind.section(at: index)
        let part = within(section.count)
        if !part.isEmpty { snapshots.append(SectionsSnapshot(section.makeSnapshot(of: part))) }
      }
    }
  }

  /// Returns the index path of an existing row.
  /// - Throws: `indexOutOfRange`, also for negative numbers.
  public func path(section index: Int, row: Int) throws(FeedError) -> IndexPath {
    guard (0..<sectionCount).contains(index) else {
      throw .indexOutOfRange(feed: name, index: index, count: sectionCount, what: .section)
    }
    let section = section(at: index)
    guard (0..<section.count).contains(row) else {
      throw .indexOutOfRange(feed: name, place: section.name, index: row, count: section.count, what: .row)
    }
    return IndexPath(section: UInt32(index), row: UInt32(row))
  }

  /// Returns the index paths of existing rows. O(rows · levels) for few rows, otherwise O(rows + sections + feeds shown).
  /// - Throws: `indexOutOfRange`, also for negative numbers.
  public func paths(ofRows rows: [(section: Int, row: Int)], _ pace: Pace) throws(FeedError) -> [IndexPath] {
    var counts: [Int] = []
    if rows.count > 64 { forEachCount { counts.append($0) } }
    var paths: [IndexPath] = []
    paths.reserveCapacity(rows.count)
    for (section, row) in rows {
      if counts.indices.contains(section) && (0..<counts[section]).contains(row) {
        paths.append(IndexPath(section: UInt32(section), row: UInt32(row)))
      } else {
        paths.append(try path(section: section, row: row))
      }
      if paths.count & 1023 == 1023 { pace.didReadElements() }
    }
    return paths
  }

  // MARK: Changes

  /// The recorded changes; nil for a bin that was never watched. Those of other feeds begin when the feed is defined.
  public var history: History? { retainedHistory?.takeUnretainedValue() }

  /// Whether changes of this feed are recorded.
  public var hasHistory: Bool { retainedHistory != nil }

  /// Whether the commit observer receives the changes of this feed.
  var hasChannel: Bool { unretainedChannel != nil }

  /// Starts recording changes, so that a watch that falls behind or resumes can catch up.
  public func beginHistory() { if !hasHistory { restore(History(base: revision)) } }

  /// The entries of a change that is recorded without a stop.
  static let fewEntries = 2048

  /// Prepares to record a change of so many entries while others can still read feeds: recording it then takes little time.
  func prepareToRecord(entries: Int, _ pace: Pace) {
    if entries > Self.fewEntries, pace.isActive { history?.prepare(for: entries, pace) }
  }

  /// Sets the revision and records the change, with `shift` added to its sections. Returns false without a history.
  /// - Parameter change: not modified; `inout` avoids reference counting of its lists.
  @inline(__always)
  func record(_ change: inout Change, shift: UInt32, revision: UInt64, at moment: Instant, _ pace: Pace?) -> Bool {
    self.revision = revision
    guard let retainedHistory else { return false }
    retainedHistory._withUnsafeGuaranteedRef { $0.append(&change, shift: shift, to: revision, at: moment, pace) }
    return true
  }

  /// Sets the revision and records the change of one row, like the other function.
  @inline(__always)
  func record(_ row: ChangeOfOne, revision: UInt64, at moment: Instant) -> Bool {
    self.revision = revision
    guard let retainedHistory else { return false }
    retainedHistory._withUnsafeGuaranteedRef { $0.append(row, to: revision, at: moment) }
    return true
  }

  /// Sets the revision of a commit whose change of this feed is not observed.
  func skip(to revision: UInt64) { self.revision = revision }

  /// Sets the revision, and discards the history. No watch can resume across this revision.
  func forgetHistory(at revision: UInt64) {
    self.revision = revision
    history?.restart(at: revision)
  }

  /// Sets the revision, and discards the history and the selection.
  func forgetPast(at revision: UInt64) {
    forgetHistory(at: revision)
    replaceSelection([])
  }

  /// Discards the history, and lets no watch resume from `revision`, at which a former feed of this name ended and this one was defined:
  /// watchers of both know the revision, with other rows.
  func beginPast(after revision: UInt64) {
    beginHistory()
    history?.restart(at: revision &+ 1)
  }

  // MARK: Account

  /// What the feed and its elements are charged to; nil for a bin, and while the feed is not defined.
  var account: Account? { charge.account }
  var definitionBytes: Int { charge.bytes }
  /// The user that defined the feed; nil for a feed of the configuration.
  public var owner: UInt32? { account?.owner }

  /// Charges the feed and its elements to an account from now on.
  func openAccount(_ account: Account, definitionBytes bytes: Int) {
    charge.open(account, bytes: bytes)
    if derived != nil { account.add(selected: selection.count) }
    kind.rows?.elements.openAccount(account)
    (kind as? ViewKind)?.charge.open(account)
  }

  /// Takes the feed and its elements off their account, which is returned.
  @discardableResult
  func closeAccount() -> Account? {
    guard account != nil else { return nil }
    kind.rows?.elements.closeAccount()
    (kind as? ViewKind)?.charge.close()
    if derived != nil { account?.add(selected: -selection.count) }
    return charge.close()
  }

  func setDefinitionBytes(_ bytes: Int) { charge.set(bytes: bytes) }

  // MARK: Definition

  /// Sets the members of the definition that every kind has.
  func setDefinition(_ behaviours: Behaviours, given: FeedDefinition?) {
    (self.behaviours, self.given) = (behaviours, given)
    for bin in collection?.bins ?? [] { bin.behaviours = behaviours }
  }

  func setGone(_ isGone: Bool) { self.isGone = isGone }

  func restore(revision: UInt64, selection: [IndexPath], given: FeedDefinition?) {
    history?.restart(at: revision)
    self.revision = revision
    replaceSelection(selection)
    self.given = given
  }

  func restore(_ history: History) {
    retainedHistory?.release()
    retainedHistory = .passRetained(history)
  }

  /// Replaces the selection. Returns whether it changed.
  func setSelection(_ paths: [IndexPath]) -> Bool {
    assert(zip(paths, paths.dropFirst()).allSatisfy(<), "selected rows are not ascending")
    if paths == selection { return false }
    replaceSelection(paths)
    return true
  }

  private func replaceSelection(_ paths: [IndexPath]) {
    if derived != nil { account?.add(selected: paths.count - selection.count) }
    selection = paths
  }
}
