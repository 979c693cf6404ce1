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
        renewBins(of: &feed, since: known)
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

  /// Renews the bins and sections whose order among each other changed: as few as possible.
  private mutating func renewBins(of feed: inout TreeFeed, since before: TreeFeed) {
    let common = before.bins.compactMap { bin in feed.bins.firstIndex { $0.instance == bin.instance } }
    let staying = common.rising
    for place in common where !staying.contains(place) {
      renew(&feed.bins[place], since: before)
      if feed.collection?.section == nil { feed.bins[place].section = token() }
    }
  }

  /// An element that left exactly one bin or section, which is still there, and entered exactly one other is the same row.
  func pairRows(of feed: inout TreeFeed, since before: TreeFeed) {
    let common = before.bins.compactMap { bin in feed.bins.firstIndex { $0.name == bin.name } }
    let staying = Set(common.rising.map { feed.bins[$0].name })
    let then = Set(before.bins.flatMap { $0.rows.map(\.token) })
    let now = Set(feed.bins.flatMap { $0.rows.map(\.token) })
    for id in feed.elements.keys {
      let left = before.bins.flatMap { bin in
        bin.rows.filter { $0.id == id && !now.contains($0.token) }.map { (bin.name, $0.token) }
      }
      let entered = feed.bins.indices.flatMap { place in
        feed.bins[place].rows.indices
          .filter { feed.bins[place].rows[$0].id == id && !then.contains(feed.bins[place].rows[$0].token) }
          .map { (place, $0) }
      }
      guard left.count == 1, entered.count == 1, staying.contains(left[0].0) else { continue }
      feed.bins[entered[0].0].rows[entered[0].1].token = left[0].1
    }
  }

  /// Renews the children that a provider shows before and after, but not in the same order: as few as possible.
  mutating func renewChildren(of name: String, since before: TreeReference) {
    guard let old = before.feeds[name], let new = feeds[name], old.instance == new.instance else { return }
    let shown = new.shown.map { instance(of: $0) }
    let common = old.shown.compactMap { shown.firstIndex(of: before.instance(of: $0)) }
    let staying = common.rising
    for place in common where !staying.contains(place) { feeds[name]?.stints[shown[place], default: 0] += 1 }
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

extension [Int] {
  /// As many of these different numbers as ascend. If there is a choice, the last of them is the least possible, then the one
  /// before it, and so on.
  var rising: [Int] {
    // How many ascend up to each, that one included.
    var lengths: [Int] = []
    for (place, number) in enumerated() {
      lengths.append(1 + (indices.prefix(place).filter { self[$0] < number }.map { lengths[$0] }.max() ?? 0))
    }
    var (result, end) = ([Int](), count)
    for length in stride(from: lengths.max() ?? 0, to: 0, by: -1) {
      let candidates = indices.prefix(end).filter { lengths[$0] == length }
      guard let place = candidates.min(by: { self[$0] < self[$1] }) else { break }
      result.insert(self[place], at: 0)
      end = place
    }
    return result
  }
}
