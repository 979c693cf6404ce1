import FeedChange
import FeedJSON
import FeedQuery

/// A collection: one section for every bin, with the elements that the filter of the bin accepts, in the order of the
/// bin. With sections by value, it has one section for every value and no bins.
///
/// Invariant: there is one feed for every bin of the definition, in order, and each shows the section of its index.
public final class CollectionKind: FeedKind {
  private let number: FeedNumber
  private(set) var state: CollectionState { didSet { unretainedState = .passUnretained(state) } }
  /// ``state``, which each update needs: to count a reference is slow.
  private var unretainedState: Unmanaged<CollectionState>
  /// A feed for every bin, in order, so that a bin can be watched and can be a child.
  public private(set) var bins: [Feed] = []
  private(set) var goneBins: [Feed] = []

  init(number: FeedNumber, state: CollectionState, graph: FeedGraph, revision: UInt64) {
    (self.number, self.state) = (number, state)
    unretainedState = .passUnretained(state)
    state.keyed?.bind(number, graph)
    if state.keyed == nil {
      bins = state.bins.indices.map { makeBin(state, $0, graph, revision: revision, isPublished: true) }
    }
  }

  /// Whether there are bins, or the open commit removes some.
  var hasBins: Bool { !bins.isEmpty || !goneBins.isEmpty }

  private func makeBin(
    _ state: CollectionState, _ index: Int, _ graph: FeedGraph, revision: UInt64, isPublished: Bool
  ) -> Feed {
    let bin = graph.makeFeed(name: state.bins[index].section.name, rank: 1, revision: revision) { _ in
      BinKind(state, index: index, isPublished: isPublished)
    }
    graph.setCollection(number, of: bin)
    return bin
  }

  public var content: CollectionDefinition { state.definition }
  public var wireName: String { "collection" }
  public var definedAs: FeedDefinition.Content? { .collection(content) }
  public var sectionCount: Int { state.keyed?.count ?? state.bins.count }
  public func section(at index: Int) -> any FeedSection {
    if let keyed = state.keyed { return keyed[index] }
    return state.bins[index].section
  }
  public func element(at path: IndexPath) -> ElementText {
    if let keyed = state.keyed { return keyed.element(at: path) }
    return state.bins[Int(path.section)].section.element(at: Int(path.row))
  }
  public var rowCount: Int { state.rowCount }
  public func locate(_ index: Int) -> (section: any FeedSection, row: Int) {
    let path = state.path(ofFlat: index)
    return (state.sections[Int(path.section)], Int(path.row))
  }
  public func path(ofFlat index: Int) -> IndexPath { state.keyed?.path(ofFlat: index) ?? state.path(ofFlat: index) }
  public func makeSnapshots() -> [SectionsSnapshot] {
    if let keyed = state.keyed { return [keyed.makeSnapshot()] }
    // Bins without rows have none of their own: feeds above may show tens of thousands.
    var (snapshots, counts): ([SectionsSnapshot], [UInt32]) = ([], [])
    for (index, bin) in state.bins.enumerated() {
      counts.append(UInt32(bin.section.count))
      if bin.section.count == 0 && index + 1 < state.bins.count { continue }
      snapshots.append(SectionsSnapshot(bin.section.makeSnapshot(), counts: counts))
      counts.removeAll()
    }
    return snapshots
  }
  public func type(at path: IndexPath) -> UnsafeRawBufferPointer { element(at: path).type }
  public var hasTypes: Bool { content.type != nil }
  public var rows: RowStore? { state }

  /// Returns the element with an identity and its places; nil if there is none.
  func find(_ id: JSONView, index: Int) throws(FeedError) -> (row: Row, places: [IndexPath])? {
    try state.find(id, index: index, isID: true).map { state.found($0) }
  }

  /// Returns the row of the element that has the identity of `element`; nil if there is none.
  /// - Throws: `noIdentity` if `element` has none.
  public func find(identityOf element: JSONView, index: Int) throws(FeedError) -> Row? {
    try state.find(identityOf: element, index: index).map { state.row(of: $0) }
  }

  // MARK: Operations

  /// Lets a long commit change a copy of the state, so that others can read the state before.
  @inline(__always)
  private func fork(for commit: Commit, steps: Int? = nil) {
    if commit.long.isAnnounced { forkIfWorthwhile(for: commit, steps: steps) }
  }

  private func forkIfWorthwhile(for commit: Commit, steps: Int?) {
    commit.long.forkIfWorthwhile(number, state, steps: steps, copy: { CollectionState(copying: state, commit.pace) }) {
      [unowned self] other in
      swap(&state, &other)
      for (index, bin) in bins.enumerated() { (bin.kind as? BinKind)?.show(state, index: index) }
    }
  }

  /// The number of requests between a look at one and its execution.
  public static let lookahead = 6

  /// Whether ``lookAhead(at:)`` is worth its time.
  public var isLarge: Bool { unretainedState._withUnsafeGuaranteedRef { ElementLookahead.isWorthwhile($0) } }

  /// Looks at the text of a request that probably updates an element soon, to bring near what that needs.
  public func lookAhead(at request: UnsafeRawBufferPointer) {
    unretainedState._withUnsafeGuaranteedRef { $0.lookAhead(at: request) }
  }

  /// Upserts one element by identity (method `update`).
  public func update(_ element: JSONView, in commit: Commit) throws(FeedError) {
    fork(for: commit)
    try unretainedState._withUnsafeGuaranteedRef { state in
      Result { () throws(FeedError) in try state.upsertAsOperation(element, on: number, in: commit) }
    }.get()
  }

  /// Upserts the elements of an array in order, as one operation with one change.
  public func update(elements: JSONView, in commit: Commit) throws(FeedError) {
    fork(for: commit)
    try commit.operate(on: number, state, rows: elements.count) { () throws(FeedError) in
      try state.upsert(elements, in: commit)
      state.evictExcess(in: commit)
    }
  }

  /// Deletes the element with an identity (method `delete`). An unknown identity is no change.
  public func delete(_ id: JSONView, in commit: Commit) throws(FeedError) {
    fork(for: commit)
    try unretainedState._withUnsafeGuaranteedRef { state in
      Result { () throws(FeedError) in try state.deleteAsOperation(id, on: number, in: commit) }
    }.get()
  }

  /// Deletes the elements with the identities of an array, as one operation.
  public func delete(ids: JSONView, in commit: Commit) throws(FeedError) {
    fork(for: commit)
    try commit.operate(on: number, state, rows: ids.count) { () throws(FeedError) in
      var handles: [UInt32] = []
      for (index, id) in ids.elements.enumerated() {
        if let handle = try state.find(id, index: index, isID: true) { handles.append(handle) }
        commit.pace.spend(onText: id.text)
      }
      // The request may name an element twice.
      if handles.count > 1 { handles = Array(Set(handles)).sorted() }
      state.remove(handles, in: commit)
    }
  }

  /// Deletes the elements that a filter accepts, as one operation (method `delete` with `where`). O(elements).
  /// - Throws: `limitExceeded` if the filter takes more than `maxQuerySteps` steps over one element or more than
  ///   `maxRequestSteps` over all, or accepts more than `maxRequestRows` elements.
  public func delete(where filter: Filter, in commit: Commit) throws(FeedError) {
    commit.startOperation()
    let handles = try state.accepted(by: filter, in: commit)
    try commit.budget.use(rows: handles.count, of: number)
    fork(for: commit, steps: handles.count)
    try commit.operate(on: number, state) { () throws(FeedError) in state.remove(handles, in: commit) }
  }

  /// Replaces the content by the elements of an array (method `set`): deletes all others, then upserts each.
  public func set(_ elements: JSONView, in commit: Commit) throws(FeedError) {
    fork(for: commit, steps: .max)
    try commit.operate(on: number, state, rows: elements.count) { () throws(FeedError) in
      var kept = Set<UInt32>(minimumCapacity: min(elements.count, state.elements.count))
      for (index, element) in elements.elements.enumerated() {
        if let handle = try state.find(identityOf: element, index: index) { kept.insert(handle) }
        commit.pace.spend(onText: element.text)
      }
      var leaving: [UInt32] = []
      state.elements.forEach { handle in
        if !kept.contains(handle) { leaving.append(handle) }
        commit.pace.spend()
      }
      try commit.budget.use(rows: leaving.count, of: number)
      state.remove(leaving, in: commit)
      try state.upsert(elements, in: commit)
      state.evictExcess(in: commit)
    }
  }

  // MARK: Redefinition

  public func redefine(_ definition: FeedDefinition, of feed: Feed, in catalog: Catalog) throws(FeedError) {
    guard case .collection(let content) = definition.content else { throw conflict(of: feed, with: definition) }
    if self.content == content { return }
    for (bin, known) in zip(bins, self.content.bins) where !content.feeds.contains(where: { $0.name == known.name }) {
      try catalog.checkNoParents(bin)
    }
    if content.section == nil {
      try catalog.graph.checkParents(of: feed, sections: content.bins.count - sectionCount, catalog.limits)
    }
    // Each new bin judges each element, whatever its filter costs.
    try catalog.commit.budget.checkRoom(forSteps: state.elements.count * max(1, content.bins.count))
    try catalog.commit.budget.use(allElements: state.elements.bytes)
    let rebinning = try Rebinning(
      state, content, feed: feed.name, limits: catalog.limits, seed: catalog.seed, catalog.commit.log)
    try catalog.commit.budget.useAbove(rows: rebinning.change.size, of: number)
    if let keyed = rebinning.state.keyed {
      try catalog.graph.checkParents(of: feed, sections: keyed.count - sectionCount, catalog.limits)
      keyed.bind(number, catalog.graph)
    }
    feed.prepareToRecord(entries: rebinning.change.size, catalog.commit.pace)
    let former = (state, bins, goneBins)
    let counts = Dictionary(uniqueKeysWithValues: bins.map { ($0.number, $0.count) })
    var growth = RowGrowth(feed: -rowCount)
    let isFirst = !catalog.commit.publisher.isRebinned(number)
    if isFirst { willRebin(catalog.commit.log) }
    install(rebinning.state, feed, in: catalog)
    catalog.commit.publisher.didRebin(number)
    catalog.refreshSummaries(with: feed, formerSlowSize: former.0.slowSize)
    catalog.commit.logStructure { [unowned self, unowned catalog] in
      for bin in bins where !former.1.contains(where: { $0 === bin }) { catalog.setGone(bin) }
      former.0.elements.moveAccount(from: state.elements)
      let undone = state.slowSize
      (state, bins, goneBins) = former
      for (index, bin) in bins.enumerated() {
        (bin.kind as? BinKind)?.show(state, index: index)
        bin.setGone(false)
      }
      if isFirst { didRebin() }
      catalog.graph.sectionsDidChange(of: feed)
      catalog.commit.publisher.undoRebin()
      catalog.refreshSummaries(with: feed, formerSlowSize: undone)
    }
    growth.feed += rowCount
    growth.bins = bins.map { $0.count - (counts[$0.number] ?? 0) }
    catalog.commit.finishOperation(on: number, result: rebinning.change, growth: growth)
  }

  /// Replaces the state. Bins that keep their name keep their feed.
  private func install(_ state: CollectionState, _ feed: Feed, in catalog: Catalog) {
    let known = Dictionary(uniqueKeysWithValues: zip(content.feeds.map(\.name), bins))
    state.elements.moveAccount(from: self.state.elements)
    self.state = state
    bins = state.definition.feeds.enumerated().map { index, bin in
      guard let feed = known[bin.name] else {
        let revision = catalog.revision &+ 1
        return makeBin(state, index, catalog.graph, revision: revision, isPublished: false)
      }
      (feed.kind as? BinKind)?.show(state, index: index)
      return feed
    }
    for (name, bin) in known where !state.definition.feeds.contains(where: { $0.name == name }) {
      catalog.setGone(bin)
      goneBins.append(bin)
    }
    catalog.graph.sectionsDidChange(of: feed)
    assert(
      state.keyed != nil || zip(bins, state.bins).allSatisfy { $0.name == $1.section.name },
      "a bin has the feed of another")
  }

  /// Tells the bins how many rows they had before the commit, which is going to redefine the collection for the first time.
  private func willRebin(_ log: UndoLog) {
    if bins.isEmpty { return }
    var differences = [Int](repeating: 0, count: bins.count)
    for (place, entry) in log.entries(of: .passUnretained(state), since: .start).enumerated() {
      switch entry.step {
      case .insertedRow: differences[Int(entry.section)] += 1
      case .removedRow: differences[Int(entry.section)] -= 1
      default: break
      }
      if place & 63 == 63 { log.pace.spend() }
    }
    for (bin, difference) in zip(bins, differences) { (bin.kind as? BinKind)?.willRebin(difference: difference) }
  }

  /// Ends a commit that redefined the collection, or undoes its first redefinition.
  func didRebin() { for bin in bins { (bin.kind as? BinKind)?.didRebin() } }

  /// Returns the feeds of the bins that this commit removed, and clears the list.
  func takeGoneBins() -> [Feed] {
    defer { goneBins = [] }
    return goneBins
  }
}
