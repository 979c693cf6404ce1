import FeedChange
import FeedModel

/// `define` and `undefine`.
extension TreeReference {
  mutating func define(_ definition: TreeDefinition, replace: Bool, _ result: Change?) throws(Refusal) {
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
    try redefine(known, definition, result)
    feeds[name]?.given = definition
    isStructural = true
  }

  private mutating func redefine(
    _ known: TreeFeed, _ definition: TreeDefinition, _ result: Change?
  ) throws(Refusal) {
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
        feed.plans += 1
      }
    case .managed: break
    }
    feeds[name] = feed
    if let result, feed.collection != nil { renewBins(of: name, before: known.bins, result) }
  }

  /// Renews the bins whose sections a change takes away although they are still there.
  mutating func renewBins(of name: String, before: [TreeFeed.Bin], _ change: Change) {
    for section in change.sectionsDeleted where before.indices.contains(Int(section)) {
      let bin = before[Int(section)]
      if feeds[name]?.bins.contains(where: { $0.instance == bin.instance }) ?? false { renew(name, bin) }
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
