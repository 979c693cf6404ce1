/// Defining, redefining and undefining feeds.
extension Catalog {
  /// Defines a feed. The same definition again is no change; another one for the same name needs `replace`, which keeps
  /// the elements and re-bins them.
  ///
  /// - Throws: `definitionConflict`, `limitExceeded`, and what the elements are refused for under the new definition.
  public func define(_ definition: FeedDefinition, replace: Bool) throws(FeedError) {
    startOperation()
    guard let known = feeds[definition.name] else { return try add(definition) }
    if known.definition == definition { return }
    guard replace else {
      throw .definitionConflict(
        feed: definition.name,
        reason: "it is defined otherwise; give \"replace\": true to redefine it, or undefine it first")
    }
    switch (known, definition.content) {
    case (let collection as CollectionFeed, .collection(let content)): try redefine(collection, content)
    default:
      throw .definitionConflict(
        feed: definition.name, reason: "it is a \(known.kind); undefine it before you define a \(definition.kind)")
    }
  }

  /// Takes a feed away with all it holds. Its watchers see all sections go.
  ///
  /// - Throws: `unknownFeed`, `wrongKind` for a bin, `definitionConflict` while another feed has it as a child.
  public func undefine(_ name: String) throws(FeedError) {
    startOperation()
    let feed = try feed(named: name)
    guard feeds[name] === feed else {
      throw .wrongKind(feed: name, kind: feed.kind, wanted: "feed of its own; redefine its collection to remove a bin")
    }
    result.sectionsDeleted = (0..<UInt32(feed.sectionCount)).map { $0 }
    feed.isGone = true
    feeds[name] = nil
    let collection = feed as? CollectionFeed
    for bin in collection?.binFeeds ?? [] { bin.isGone = true }
    updateExpiring()
    log.append(undo: { [unowned self] in
      feed.isGone = false
      for bin in collection?.binFeeds ?? [] { bin.isGone = false }
      feeds[name] = feed
      updateExpiring()
    })
    finishOperation(on: feed)
  }

  private func add(_ definition: FeedDefinition) throws(FeedError) {
    guard feeds.count < limits.maxFeeds else {
      throw .limitExceeded(
        limit: "maxFeeds", value: limits.maxFeeds,
        reason: "undefine feeds that are not needed, or start feedd with a larger --max-feeds")
    }
    let name = definition.name
    switch definition.content {
    case .collection(let content):
      feeds[name] = CollectionFeed(
        name: name, definition: content, limits: limits, seed: seed, revision: revision &+ 1)
    }
    updateExpiring()
    log.append(undo: { [unowned self] in
      feeds[name] = nil
      updateExpiring()
    })
  }

  private func redefine(_ feed: CollectionFeed, _ content: CollectionDefinition) throws(FeedError) {
    let rebinning = try Rebinning(feed, content, limits: limits, seed: seed)
    result = rebinning.change
    let (state, bins, gone) = (feed.state, feed.binFeeds, feed.goneBins)
    rebinning.install(in: feed, revision: revision &+ 1)
    updateExpiring()
    log.append(undo: { [unowned self] in
      feed.state = state
      feed.binFeeds = bins
      feed.goneBins = gone
      for (index, bin) in bins.enumerated() {
        bin.index = index
        bin.isGone = false
      }
      updateExpiring()
    })
    finishOperation(on: feed)
  }

  /// Keeps the list of collections that evict by age.
  private func updateExpiring() {
    expiring = feeds.values.compactMap { $0 as? CollectionFeed }.filter { $0.content.retain?.seconds != nil }
  }
}

extension Feed {
  /// What `define` would have to be given to make this feed; nil for a bin, which its collection defines.
  public var definition: FeedDefinition? {
    switch self {
    case let collection as CollectionFeed:
      FeedDefinition(name: name, content: .collection(collection.state.definition))
    default: nil
    }
  }
}
