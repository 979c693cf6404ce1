import FeedChange

/// Defining, redefining and undefining feeds.
extension Catalog {
  /// Defines a feed. The same definition again is no change; another one for the same name needs `replace`, which keeps
  /// the elements and re-bins them.
  ///
  /// - Throws: `definitionConflict`, `limitExceeded`, `unknownFeed` for a child, and what the elements are refused for under
  ///   the new definition.
  public func define(_ definition: FeedDefinition, replace: Bool) throws(FeedError) {
    startOperation()
    guard let known = feeds[definition.name] else { return try add(definition) }
    if known.definition == definition || !replace && known.given == definition { return }
    guard replace else {
      throw .definitionConflict(
        feed: definition.name,
        reason: "it is defined otherwise; give \"replace\": true to redefine it, or undefine it first")
    }
    try redefine(known, definition)
  }

  /// Takes a feed away with all it holds. Its watchers see all sections go.
  ///
  /// - Throws: `unknownFeed`, `wrongKind` for a bin, `definitionConflict` while another feed has it as a child.
  public func undefine(_ name: String) throws(FeedError) {
    startOperation()
    let feed = try feed(named: name)
    guard feeds[name] === feed else {
      throw .wrongKind(
        feed: name, kind: feed.kind, wanted: "a feed of its own; redefine its collection to remove a bin")
    }
    let family = [feed] + ((feed as? CollectionFeed)?.binFeeds ?? [])
    for member in family { try checkNoParents(member) }
    result.sectionsDeleted = (0..<feed.sectionCount).map { UInt32($0) }
    for member in family { member.isGone = true }
    feeds[name] = nil
    feed.leaveSources()
    updateExpiring()
    log.append(undo: { [unowned self] in
      for member in family { member.isGone = false }
      feed.joinSources()
      feeds[name] = feed
      updateExpiring()
    })
    finishOperation(on: feed)
    // Whoever watches a feed without sections is told of its end as well.
    touch(feed)
  }

  func checkNoParents(_ feed: Feed) throws(FeedError) {
    guard let parent = feed.parents.first else { return }
    throw .definitionConflict(
      feed: feed.name, reason: "\"\(parent.feed.name)\" shows it; take it from there or undefine that feed first")
  }

  private func add(_ definition: FeedDefinition) throws(FeedError) {
    guard feeds.count < limits.maxFeeds else {
      throw .limitExceeded(
        limit: "maxFeeds", value: limits.maxFeeds,
        reason: "undefine feeds that are not needed, or start feedd with a larger --max-feeds")
    }
    let feed = try makeFeed(definition)
    feed.behaviours = definition.behaviours
    feed.given = definition
    feed.beginHistory()
    feeds[definition.name] = feed
    updateExpiring()
    touch(feed)
    log.append(undo: { [unowned self] in
      feed.leaveSources()
      feed.isGone = true
      feeds[definition.name] = nil
      updateExpiring()
    })
  }

  private func makeFeed(_ definition: FeedDefinition) throws(FeedError) -> Feed {
    let name = definition.name
    if definition.content.shown.contains(name) {
      throw .definitionConflict(feed: name, reason: "it would show itself, a circle")
    }
    switch definition.content {
    case .collection(let content):
      return CollectionFeed(name: name, definition: content, limits: limits, seed: seed, revision: revision &+ 1)
    case .list(let list):
      return ListFeed(name: name, shape: list.shape, type: list.type, limits: limits, revision: revision &+ 1)
    case .composed(let names):
      let feed = ComposedFeed(name: name, revision: revision &+ 1)
      try adopt(names, by: feed) { $0 }
      return feed
    case .segmented(let names, let current):
      let feed = SegmentedFeed(name: name, revision: revision &+ 1)
      try adopt(names, by: feed) { SegmentedFeed.shown($0, current) }
      feed.current = current
      feed.structureDidChange()
      feed.publishStructure()
      return feed
    case .slots(let slots):
      let plan = try plan(slots, for: nil, named: name)
      return SlotsFeed(name: name, plan: plan, shape: shape, revision: revision &+ 1)
    case .managed(let managed):
      return ManagedFeed(name: name, definition: managed, limits: limits, seed: seed, revision: revision &+ 1)
    }
  }

  private func adopt(_ names: [String], by feed: ProviderFeed, showing shown: ([Feed]) -> [Feed]) throws(FeedError) {
    let children = try resolve(names)
    try checkChildren(children, of: nil, named: feed.name)
    try checkGrowth(of: nil, named: feed.name, children: children, showing: shown(children))
    feed.adopt(children)
    feed.publishStructure()
  }

  /// The plan of a slots definition, with its contents checked. `feed` is nil while it is being defined.
  func plan(_ slots: SlotsDefinition, for feed: Feed?, named name: String) throws(FeedError) -> SlotsFeed.Plan {
    let contents = try resolve(slots.contents.map(\.feed))
    try checkChildren(contents, of: feed, named: name)
    try checkGrowth(of: feed, named: name, children: contents, showing: [])
    return SlotsFeed.Plan(slots, contents: Dictionary(uniqueKeysWithValues: zip(slots.contents.map(\.type), contents)))
  }

  /// Keeps the list of collections that evict by age.
  func updateExpiring() {
    let collections = feeds.values.compactMap { $0 as? CollectionFeed }.filter { $0.content.retain?.seconds != nil }
    // In one order in every process: evictions are replayed.
    expiring = collections.sorted { $0.name < $1.name }
  }
}
