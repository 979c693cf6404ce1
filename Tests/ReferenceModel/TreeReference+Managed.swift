import FeedModel

/// Managed feeds: the daemon's configuration defines them, and all of their rows are set at once.
extension TreeReference {
  /// Defines a managed feed, gives a known one another definition, or undefines it.
  mutating func configure(_ name: String, _ definition: TreeDefinition?) throws(Refusal) {
    guard let definition, case .managed(let managed) = definition.content else {
      if hasParents(name) { throw Refusal(code: -32001) }
      feeds[name] = nil
      isStructural = true
      return
    }
    if feeds[name]?.given == definition { return }
    if feeds[name] == nil {
      var feed = TreeFeed(definition: definition, given: definition, instance: token())
      if managed.section == nil { feed.sets = [.init(name: name)] }
      (feed.identifiedBy, feed.typedBy) = (managed.id, managed.type)
      feeds[name] = feed
    }
    // The rows stay as they are until the next ones.
    feeds[name]?.definition = definition
    feeds[name]?.given = definition
    isStructural = true
  }

  /// Sets the rows of a managed feed. Rows with the identity of one that is there are that row.
  mutating func setManaged(_ name: String, _ elements: [TreeElement]) throws(Refusal) {
    guard var feed = feeds[name], let managed = feed.managed else { throw Refusal(code: -32000) }
    var seen: Set<Int> = []
    for element in elements {
      guard let id = managed.identity(element) else { throw Refusal(code: -32003) }
      if !seen.insert(id).inserted { throw Refusal(code: -32602) }
    }
    var known: [Int: UInt64] = [:]
    if feed.identifiedBy == managed.id {
      for (id, row) in feed.sets.flatMap(\.rows) { known[id] = row.token }
    }
    // The first rows of another definition are a commit, even if they are none.
    if (feed.identifiedBy, feed.typedBy) != (managed.id, managed.type) { isStructural = true }
    (feed.identifiedBy, feed.typedBy) = (managed.id, managed.type)
    feed.sets = managed.section == nil ? [.init(name: name)] : []
    for element in elements {
      guard let id = managed.identity(element) else { continue }
      let value = managed.value(element)
      let section = value.isEmpty ? name : "\(name)/\(value)"
      if !feed.sets.contains(where: { $0.name == section }) { feed.sets.append(.init(name: section)) }
      let row = TreeRow(token: known[id] ?? token(), element, type: managed.type)
      for place in feed.sets.indices where feed.sets[place].name == section { feed.sets[place].rows.append((id, row)) }
    }
    feeds[name] = feed
  }

  /// The feeds that showed rows of managed feeds before, and no longer do.
  func feedsWithoutManagedRows(since before: TreeReference) -> [String] {
    before.feeds.values.filter { old in
      let name = old.definition.name
      return feeds[name]?.instance == old.instance && before.showsManagedRows(name) && !showsManagedRows(name)
    }.map(\.definition.name)
  }

  /// Whether a feed or bin shows rows of managed feeds.
  func showsManagedRows(_ name: String) -> Bool {
    guard let feed = feeds[name] else { return false }
    return feed.managed != nil || feed.definition.sources.contains(where: showsManagedRows)
  }
}
