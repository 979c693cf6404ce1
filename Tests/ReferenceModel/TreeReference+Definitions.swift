/// `define` and `undefine`.
extension TreeReference {
  mutating func define(_ definition: TreeDefinition, replace: Bool) throws(Refusal) {
    let name = definition.name
    guard let known = feeds[name] else {
      try check(definition.sources, of: name, others: definition.sources)
      var feed = TreeFeed(definition: definition, given: definition, instance: token())
      if case .collection(let collection) = definition.content, collection.section == nil {
        feed.bins = collection.bins.map { .init(instance: token(), name: $0.name) }
      }
      feeds[name] = feed
      isStructural = true
      return
    }
    if known.definition == definition || !replace && known.given == definition { return }
    guard replace, known.definition.kind == definition.kind else { throw Refusal(code: -32001) }
    try redefine(known, definition)
    feeds[name]?.given = definition
    isStructural = true
  }

  private mutating func redefine(_ known: TreeFeed, _ definition: TreeDefinition) throws(Refusal) {
    var feed = known
    let name = definition.name
    feed.definition = definition
    switch definition.content {
    case .list(let list):
      if list.hasID { try checkIdentities(of: feed) }
      if known.hasIdentity != feed.hasIdentity { rebinned.insert(name) }
      evictItems(of: &feed)
    case .collection(let collection):
      let kept = collection.section == nil ? collection.bins.map(\.name) : []
      for bin in known.feedBins where !kept.contains(bin.name) {
        if hasParents("\(name)/\(bin.name)") { throw Refusal(code: -32001) }
      }
      if known.definition.content != definition.content {
        rebin(&feed, collection)
        pairRows(of: &feed, since: known)
        rebinned.insert(name)
      }
    case .composed, .segmented:
      try check(definition.sources, of: name, others: definition.sources)
    case .view:
      if known.definition.content != definition.content {
        try check(definition.sources, of: name, others: definition.sources)
      }
    case .slots:
      if known.definition.content != definition.content {
        try check(definition.sources, of: name, others: definition.sources)
      }
    case .managed: break
    }
    feeds[name] = feed
  }

  /// An element that left exactly one bin or section and entered exactly one other is the same row.
  func pairRows(of feed: inout TreeFeed, since before: TreeFeed) {
    let then = Set(before.bins.flatMap { $0.rows.map(\.token) })
    let now = Set(feed.bins.flatMap { $0.rows.map(\.token) })
    for id in feed.elements.keys {
      let left = before.bins.flatMap { bin in
        bin.rows.filter { $0.id == id && !now.contains($0.token) }.map(\.token)
      }
      let entered = feed.bins.indices.flatMap { place in
        feed.bins[place].rows.indices
          .filter { feed.bins[place].rows[$0].id == id && !then.contains(feed.bins[place].rows[$0].token) }
          .map { (place, $0) }
      }
      guard left.count == 1, entered.count == 1 else { continue }
      feed.bins[entered[0].0].rows[entered[0].1].token = left[0]
    }
  }

  mutating func undefine(_ name: String) throws(Refusal) {
    let feed = try feed(name) { _ in true }
    if feed.managed != nil { throw Refusal(code: -32006) }
    let family = [name] + feed.feedBins.map { "\(name)/\($0.name)" }
    if family.contains(where: hasParents) { throw Refusal(code: -32001) }
    feeds[name] = nil
    isStructural = true
  }

  func hasParents(_ name: String) -> Bool {
    feeds.values.contains { $0.definition.sources.contains(name) }
  }
}
