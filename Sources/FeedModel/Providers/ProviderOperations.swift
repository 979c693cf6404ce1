import FeedChange

public enum ChildPlace: Sendable, Equatable {
  case end
  case index(Int)
  case before(String)
  case after(String)
}

/// The operations on composed and segmented feeds. Each leaves its change in the commit. If it throws, nothing changed.
extension ProviderKind {
  /// Adds a feed or bin as a child (method `insertChild`).
  /// - Throws: `unknownFeed`, `definitionConflict` for a cycle or a feed that is already a child, `indexOutOfRange`,
  ///   `invalidParams` if `before` or `after` names no child.
  public func insertChild(_ name: String, at place: ChildPlace, in catalog: Catalog) throws(FeedError) {
    let (feed, child) = (catalog.table[number], try catalog.feed(named: name))
    try useChildren(in: catalog)
    try catalog.checkChildren([child], of: feed, named: feed.name, besides: children)
    let index = try index(of: place, in: catalog)
    let bytes = FeedDefinition.bytes(ofChild: child.name)
    try feed.account?.checkRoom(feeds: 0, definitionBytes: bytes, catalog.limits)
    let isShown = form == .composed || children.isEmpty
    try catalog.graph.checkGrowth(
      of: feed, named: feed.name, children: children + [child], showing: shown + (isShown ? [child] : []),
      steps: stepsPerRow, catalog.limits, catalog.commit.pace)
    catalog.commit.pace.spend(children.count / Self.childrenOfAUnit)
    var changed = children
    changed.insert(child, at: index)
    var active = current
    if form == .segmented { active = changed.count == 1 ? 0 : (index <= current ? current + 1 : current) }
    try useRows(of: isShown ? [child] : [], in: catalog)
    try restructure(changed, current: active, in: catalog.commit)
  }

  /// Counts the children of this feed and the feeds above, at all of which an operation looks, before anything is done.
  private func useChildren(in catalog: Catalog) throws(FeedError) {
    try catalog.commit.budget.use(children: children.count, of: catalog.table[number])
  }

  /// Counts the rows of children that come to be shown or change their order, here and in all feeds above, beforehand.
  /// - Parameters:
  ///   - children: those that will be shown, or a part of them.
  ///   - all: the children that the feed gets, if they may be others than it has.
  private func useRows(of children: [Feed], among all: [Feed] = [], in catalog: Catalog) throws(FeedError) {
    let (commit, graph, feed) = (catalog.commit, catalog.graph, catalog.table[number])
    let places = Dictionary(uniqueKeysWithValues: children.enumerated().map { ($1.number, $0) })
    let common = shown.compactMap { places[$0.number] }
    let staying = Set(commit.budget.countsRepeatedWork ? longestIncreasing(common).map { common[$0] } : common)
    let coming = children.indices.filter { !staying.contains($0) }.map { children[$0] }
    var rows = 0
    for child in coming {
      try commit.budget.usePreviews(of: child)
      rows += graph.countedRows(of: child) + graph.countedSections(of: child)
    }
    if rows > 0 { try commit.budget.use(rows: rows * graph.listings(of: feed)) }
    try commit.budget.useManagedRows(of: coming)
    if !graph.isRepeatable(number) || !(children + all).allSatisfy(graph.countsAll(of:)) {
      try commit.budget.useStepsOfViews(above: number, showing: coming)
    }
  }

  /// Removes a child (method `removeChild`). If it is the active child of a segmented feed, its successor becomes
  /// active, or the last child if there is no successor.
  public func removeChild(at index: Int, in catalog: Catalog) throws(FeedError) {
    guard children.indices.contains(index) else {
      throw .indexOutOfRange(feed: catalog.table[number].name, index: index, count: children.count, what: .child)
    }
    try useChildren(in: catalog)
    var changed = children
    changed.remove(at: index)
    var active = current
    if form == .segmented {
      if index < current { active = current - 1 } else if index == current { active = min(index, changed.count - 1) }
    }
    try useRows(of: form == .segmented ? Self.shown(changed, active) : [], in: catalog)
    try restructure(changed, current: active, in: catalog.commit)
  }

  /// Sets the active child of a segmented feed; -1 for none (method `activate`). An index out of range is clamped.
  /// - Throws: `limitExceeded` if a feed that shows this one would have too many sections.
  public func activate(index: Int, in catalog: Catalog) throws(FeedError) {
    assert(form == .segmented, "a composed feed has no active child")
    let target = min(max(index, -1), children.count - 1)
    if target == current { return catalog.commit.startOperation() }
    try useChildren(in: catalog)
    let (feed, graph) = (catalog.table[number], catalog.graph)
    let sections = Self.shown(children, target).reduce(0) { $0 + graph.countedSections(of: $1) }
    try graph.checkParents(of: feed, sections: sections - graph.countedSections(of: feed), catalog.limits)
    try useRows(of: Self.shown(children, target), in: catalog)
    try restructure(children, current: target, in: catalog.commit)
  }

  public func child(named name: String, in catalog: Catalog) throws(FeedError) -> Int {
    if let index = children.firstIndex(where: { $0.name == name }) { return index }
    _ = try catalog.feed(named: name)
    throw .invalidParams(
      member: "child", reason: "is \"\(name)\", which is no child of \"\(catalog.table[number].name)\"")
  }

  public func redefine(_ definition: FeedDefinition, of feed: Feed, in catalog: Catalog) throws(FeedError) {
    switch (form, definition.content) {
    case (.composed, .composed(let names)):
      let children = try catalog.checkedChildren(names, of: feed, named: feed.name) { $0 }
      try useRows(of: children, in: catalog)
      try restructure(children, current: current, in: catalog.commit)
    case (.segmented, .segmented(let names, let active)):
      let children = try catalog.checkedChildren(names, of: feed, named: feed.name) { Self.shown($0, active) }
      try useRows(of: Self.shown(children, active), among: children, in: catalog)
      try restructure(children, current: active, in: catalog.commit)
    default: throw conflict(of: feed, with: definition)
    }
  }

  /// The children that a step of an operation on them looks at in a unit of work.
  static let childrenOfAUnit = 4

  private func restructure(_ children: [Feed], current: Int, in commit: Commit) throws(FeedError) {
    commit.startOperation()
    let (before, former, graph) = (structure, (children: self.children, current: self.current), commit.graph)
    let growth = try growth(showing: form == .composed ? children : Self.shown(children, current), in: commit)
    install(children, current: current, graph)
    let (feed, bytes) = (graph.table[number], FeedDefinition.bytes(ofChildren: children.lazy.map(\.name)))
    let formerBytes = feed.definitionBytes
    feed.setDefinitionBytes(bytes)
    // From here on no feed is read until the commit ends. What follows may stop.
    commit.logStructure { [unowned self, unowned commit] in
      install(former.children, current: former.current, graph)
      feed.setDefinitionBytes(formerBytes)
      commit.pace.spend(former.children.count / 16)
    }
    commit.pace.spend(children.count / Self.childrenOfAUnit)
    let change = restructuring(from: before, SourceChanges(), commit.pace)
    commit.pace.spend(children.count / Self.childrenOfAUnit)
    commit.finishOperation(on: number, result: change, growth: growth)
    commit.publisher.open(number)
    commit.relistAtEnd(feed)
  }

  /// How many rows more this feed shows with other visible children, if views count them. If it shows no other rows than before, the
  /// rows that it loses are not counted.
  /// - Throws: `limitExceeded` for what it takes to count the rows of children that it no longer shows.
  private func growth(showing after: [Feed], in commit: Commit) throws(FeedError) -> RowGrowth? {
    let graph = commit.graph
    guard graph.indexedViews > 0, commit.budget.countsReading else { return nil }
    let (before, kept) = (Set(shown.map(\.number)), Set(after.map(\.number)))
    var growth = after.reduce(0) { before.contains($1.number) ? $0 : $0 + graph.countedRows(of: $1) }
    if growth == 0 { return RowGrowth(feed: 0) }
    for child in shown where !kept.contains(child.number) {
      try commit.budget.usePreviews(of: child)
      growth -= graph.countedRows(of: child)
    }
    return RowGrowth(feed: growth)
  }

  private func index(of place: ChildPlace, in catalog: Catalog) throws(FeedError) -> Int {
    switch place {
    case .end: return children.count
    case .before(let name): return try child(named: name, in: catalog)
    case .after(let name): return try child(named: name, in: catalog) + 1
    case .index(let index):
      guard (0...children.count).contains(index) else {
        throw .indexOutOfRange(
          feed: catalog.table[number].name, index: index, count: children.count, what: .placeOfChild)
      }
      return index
    }
  }
}
