import FeedChange

/// Defining, redefining and undefining feeds.
extension Catalog {
  /// Defines a feed. An equal definition of an existing feed changes nothing. A different definition requires
  /// `replace`, which keeps the elements and sorts them into the new bins (Protocol/README.md, "Definitions").
  /// - Parameter owner: the user that a new feed is charged to; nil for the daemon itself. A feed keeps its owner.
  /// - Throws: `definitionConflict`, `limitExceeded`, `unknownFeed` for a child, and the errors of elements that are
  ///   invalid under the new definition.
  public func define(_ definition: FeedDefinition, replace: Bool, by owner: UInt32? = nil) throws(FeedError) {
    commit.startOperation()
    guard let known = table.byName[definition.name] else { return try add(definition, by: owner) }
    if isSame(known.definition, definition) || !replace && isSame(known.given, definition) { return }
    guard replace else {
      if known.kindName != definition.kind { throw known.kind.conflict(of: known, with: definition) }
      throw .definitionConflict(
        feed: definition.name,
        reason: "it has another definition; give \"replace\": true to redefine it, or undefine it first")
    }
    let former = (known.behaviours, known.given, known.definitionBytes)
    let bytes = definition.storedBytes(limits)
    try known.account?.checkRoom(feeds: 0, definitionBytes: bytes - former.2, limits)
    if commit.budget.countsReading { try commit.budget.use(children: 0, of: known) }
    try known.kind.redefine(definition, of: known, in: self)
    known.setDefinition(definition.behaviours, given: definition)
    known.setDefinitionBytes(bytes)
    commit.logStructure {
      known.setDefinition(former.0, given: former.1)
      known.setDefinitionBytes(former.2)
    }
    try commit.relist(known)
  }

  /// Whether definitions are equal. The members of an object have no order, but by rules before 6 that of `contents` counts.
  private func isSame(_ known: FeedDefinition?, _ other: FeedDefinition) -> Bool {
    if known == other { return true }
    guard commit.rules >= 6, let known, case .slots(let slots) = known.content, case .slots(let others) = other.content,
      slots.contents.count == others.contents.count
    else { return false }
    let ordered = FeedDefinition.Content.slots(others.ordered(like: slots))
    return known == FeedDefinition(name: other.name, content: ordered, behaviours: other.behaviours)
  }

  /// Records the definition that the configuration gave a feed, after the commit. `define` does not if the feed was like that already:
  /// the next start would take what clients change later for another definition in the file. By rules before 6, it does.
  public func didGive(_ definition: FeedDefinition) {
    guard commit.rules >= 6, let feed = table.byName[definition.name] else { return }
    feed.setDefinition(feed.behaviours, given: definition)
  }

  /// Removes a feed with all its rows. Its watchers receive the deletion of all sections.
  /// - Throws: `unknownFeed`, `wrongKind` for a bin, `definitionConflict` if another feed shows it.
  public func undefine(_ name: String) throws(FeedError) {
    commit.startOperation()
    let feed = try feed(named: name)
    if feed.kind is FeedListKind { throw FeedListKind.readOnly }
    if feed.kind is BinKind {
      throw .wrongKind(
        feed: name, kind: feed.kindName, wanted: "a feed of its own; redefine its collection to remove a bin")
    }
    let family = [feed] + feed.kind.bins
    for member in family { try checkNoParents(member) }
    let change = Change(sectionsDeleted: (0..<feed.sectionCount).map { UInt32($0) })
    for member in family { setGone(member) }
    let (account, bytes) = (feed.closeAccount(), feed.definitionBytes)
    table.remove(feed)
    graph.unlink(feed)
    refreshSummaries(with: feed)
    commit.logStructure { [unowned self] in
      for member in family { member.setGone(false) }
      if let account { feed.openAccount(account, definitionBytes: bytes) }
      graph.link(feed)
      table.add(feed)
      refreshSummaries(with: feed)
    }
    commit.finishOperation(on: feed.number, result: change)
    try commit.relist(feed)
    // A feed without sections has an empty change. Its watchers are still notified that it ended.
    commit.publisher.open(feed.number)
  }

  /// The definitions to apply before several others, so that these can remove bins which feeds among them still show: the present ones
  /// of such feeds, with only what they show afterwards too. Other feeds that they show may be gone when the definitions are executed.
  public func detachments(before definitions: [FeedDefinition]) -> [FeedDefinition] {
    var leaving: Set<String> = []
    for definition in definitions {
      guard case .collection(let content) = definition.content else { continue }
      leaving.formUnion(table.byName[definition.name]?.kind.bins.map(\.name) ?? [])
      leaving.subtract(content.feeds.map { "\(definition.name)/\($0.name)" })
    }
    if leaving.isEmpty { return [] }
    return definitions.compactMap { definition in
      guard let present = table.byName[definition.name]?.definition else { return nil }
      let kept = Set(definition.content.shown)
      let gone = Set(present.content.shown).subtracting(kept)
      return gone.isDisjoint(with: leaving) ? nil : present.hiding(gone)
    }
  }

  func setGone(_ feed: Feed) {
    feed.setGone(true)
    table.release(feed)
  }

  /// Throws if another feed shows this feed or bin.
  func checkNoParents(_ feed: Feed) throws(FeedError) {
    guard let parent = graph.parents(of: feed.number).first else { return }
    let name = table.mention(table[parent.feed], or: "another feed")
    throw .definitionConflict(feed: feed.name, reason: "\(name) shows it; remove it there or undefine that feed first")
  }

  private func add(_ definition: FeedDefinition, by owner: UInt32?) throws(FeedError) {
    guard table.count < limits.maxFeeds else { throw limits.exceeded(\.maxFeeds, "undefine feeds that are not needed") }
    let (account, bytes) = (accounts.account(of: owner), definition.storedBytes(limits))
    try account.checkRoom(feeds: 1, definitionBytes: bytes, limits)
    try checkRowsOfViews(above: table.list, added: 1)
    let feed = try makeFeed(definition, account)
    feed.openAccount(account, definitionBytes: bytes)
    feed.kind.rows?.elements.discarded = discarded
    feed.setDefinition(definition.behaviours, given: definition)
    feed.beginHistory()
    table.add(feed)
    graph.link(feed)
    refreshSummaries(with: feed)
    commit.publisher.open(feed.number)
    commit.logStructure { [unowned self] in
      graph.unlink(feed)
      feed.closeAccount()
      for member in [feed] + feed.kind.bins { setGone(member) }
      table.remove(feed)
      refreshSummaries(with: feed)
    }
    try commit.relist(feed)
  }

  /// Creates a feed of the kind of its definition. All checks precede the creation.
  private func makeFeed(_ definition: FeedDefinition, _ account: Account) throws(FeedError) -> Feed {
    let name = definition.name
    if definition.content.shown.contains(name) {
      throw .definitionConflict(feed: name, reason: "it would show itself, which is a cycle")
    }
    func make(_ kind: (FeedNumber) -> any FeedKind) -> Feed {
      graph.makeFeed(name: name, rank: 0, revision: revision &+ 1, kind)
    }
    switch definition.content {
    case .collection(let content):
      let state = CollectionState(feed: name, definition: content, limits: limits, seed: seed)
      return make { CollectionKind(number: $0, state: state, graph: graph, revision: revision &+ 1) }
    case .list(let list):
      return make { ListKind(number: $0, name: name, definition: list, limits: limits, seed: seed) }
    case .composed(let names):
      let children = try checkedChildren(names, of: nil, named: name) { $0 }
      return make { ProviderKind(number: $0, form: .composed, children: children, counts: graph.counts) }
    case .segmented(let names, let current):
      let children = try checkedChildren(names, of: nil, named: name) { ProviderKind.shown($0, current) }
      return make {
        ProviderKind(number: $0, form: .segmented, children: children, current: current, counts: graph.counts)
      }
    case .slots(let slots):
      let plan = try plan(slots, for: nil, named: name)
      return make { _ in SlotsKind(name: name, plan: plan, counts: graph.counts) }
    case .view(let view):
      let plan = try plan(view, for: nil, named: name, account: account)
      let kind = ViewKind(name: name, plan: plan, counts: graph.counts, limits: limits, discarded, commit.pace)
      // The rows of an image follow later, and those of `$feeds` at the end of the definition.
      if !commit.isRestoring && !graph.isShown(table.list, by: plan.source) { kind.prepare() }
      return make { _ in kind }
    case .managed(let managed):
      return make { ManagedKind(number: $0, name: name, definition: managed, limits: limits, seed: seed) }
    }
  }

  /// Returns the feeds with these names if `feed` may have them as children. `feed` is nil while it is being defined.
  func checkedChildren(
    _ names: [String], of feed: Feed?, named name: String, steps: Int = ProviderKind.stepsPerRow,
    showing shown: ([Feed]) -> [Feed]
  ) throws(FeedError) -> [Feed] {
    var children: [Feed] = []
    for name in names { children.append(try self.feed(named: name)) }
    try checkChildren(children, of: feed, named: name)
    let units = children.count / ProviderKind.childrenOfAUnit
    commit.pace.spend(units)
    try graph.checkGrowth(
      of: feed, named: name, children: children, showing: shown(children), steps: steps, limits, commit.pace)
    commit.pace.spend(units)
    return children
  }

  /// Throws if a child is named twice or would create a cycle.
  /// - Parameter known: children that the feed has already.
  func checkChildren(
    _ children: [Feed], of feed: Feed?, named name: String, besides known: [Feed] = []
  ) throws(FeedError) {
    var seen = Set(known.lazy.map(\.number))
    let showing = feed.map { graph.showing($0) } ?? []
    for child in children {
      guard seen.insert(child.number).inserted else {
        throw .definitionConflict(feed: name, reason: "\"\(child.name)\" may be its child only once")
      }
      if showing.contains(child.number) {
        throw .definitionConflict(
          feed: name, reason: "\"\(child.name)\" shows \"\(name)\" already, so the two would form a cycle")
      }
    }
  }

  /// Returns the plan of a view after checking its source.
  /// - Parameter account: that of the user that defines or defined the view.
  func plan(
    _ view: ViewDefinition, for feed: Feed?, named name: String, account: Account?
  ) throws(FeedError) -> ViewPlan {
    let sources = try checkedChildren([view.of], of: feed, named: name, steps: view.stepsPerRow(limits)) { _ in [] }
    let plan = ViewPlan(view, source: sources[0])
    try commit.budget.usePreviews(of: plan.source)
    try commit.budget.use(rows: graph.countedRows(of: plan.source))
    if !view.isPlain { try commit.budget.use(allElements: graph.countedBytes(of: plan.source, commit.pace)) }
    try commit.budget.useManagedRows(of: feed == nil ? [] : [plan.source])
    // Replay has charged it for no rows of managed feeds.
    let charge = feed.flatMap { graph.isRepeatable($0.number) ? ($0.kind as? ViewKind)?.charge : nil }
    if let account { try checkIndex(of: plan, replacing: charge?.rows ?? 0, account) }
    if view.filter != nil, limits.countsAllWork, !commit.isRestoring { try countSteps(of: plan, named: name) }
    return plan
  }

  /// Counts the steps of the filter of a view over the rows of its source, and refuses the view if they are too many. The view
  /// takes them when the commit is final and cannot fail any more.
  private func countSteps(of plan: ViewPlan, named name: String) throws(FeedError) {
    try commit.budget.checkRoom(forSteps: graph.countedRows(of: plan.source))
    let judge = ViewJudge(plan.definition, limits: limits)
    let log = commit.log
    for feed in graph.countedFeeds(of: plan.source) {
      feed.forEachRow { row in
        if log.stepsLeft >= 0 { log.didUse(steps: judge.steps(over: row.element)) }
        log.pace.spend(2)
      }
    }
    try commit.budget.checkRoom(forSteps: 0)
  }

  /// Returns the plan of a slots feed after checking its contents.
  func plan(
    _ slots: SlotsDefinition, for feed: Feed?, named name: String, following followed: [SlotsPlan] = []
  ) throws(FeedError) -> SlotsPlan {
    let contents = try checkedChildren(
      slots.contents.map(\.feed), of: feed, named: name, steps: slots.stepsPerRow
    ) { _ in [] }
    for content in contents { try commit.budget.usePreviews(of: content) }
    return SlotsPlan(
      slots, contents: Dictionary(uniqueKeysWithValues: zip(slots.contents.map(\.type.exact), contents)),
      following: followed)
  }
}

extension FeedDefinition {
  /// The same without some of the feeds that it shows. A view, which must show one, shows `$feeds`.
  fileprivate func hiding(_ names: Set<String>) -> FeedDefinition {
    let kept = content.shown.filter { !names.contains($0) }
    let rest: Content
    switch content {
    case .composed: rest = .composed(children: kept)
    case .segmented(let children, let current):
      let active = children.indices.contains(current) ? kept.firstIndex(of: children[current]) : nil
      rest = .segmented(children: kept, current: active ?? -1)
    case .slots(let slots): rest = .slots(slots.hiding(names))
    case .view:
      let window = ViewWindow(offset: 0, limit: nil)
      rest = .view(ViewDefinition(of: FeedName.feeds, filter: nil, sort: [], window: window))
    case .collection, .list, .managed: rest = content
    }
    return FeedDefinition(name: name, content: rest, behaviours: behaviours)
  }
}

extension SlotsDefinition {
  fileprivate func hiding(_ names: Set<String>) -> SlotsDefinition {
    replacing(contents: contents.filter { !names.contains($0.feed) })
  }

  /// The same with the contents of types that `other` has too in its order, and without others.
  fileprivate func ordered(like other: SlotsDefinition) -> SlotsDefinition {
    let feeds = Dictionary(uniqueKeysWithValues: contents.map { ($0.type.exact, $0) })
    return replacing(contents: other.contents.compactMap { feeds[$0.type.exact] })
  }

  private func replacing(contents: [Content]) -> SlotsDefinition {
    SlotsDefinition(
      contents: contents, pattern: pattern, repeatables: repeatables, header: header, defaultType: defaultType,
      fixed: fixed, types: types)
  }
}
