import FeedChange
import FeedModel

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// Checks after a commit.
extension TreeWorld {
  /// The deltas of the watcher since the last call: by revision, then by feed.
  typealias Deltas = [Int: [String: Value]]

  /// Adopts the state after an executed operation, and compares everything visible with it.
  func settle(_ next: TreeReference, _ answer: Value, _ operations: [TreeOperation]) throws {
    try settle((next, answer["result"]?["revision"]?.int ?? -1, operations))
  }

  /// Adopts the state after an operation, if any, and after each of the evictions that follow it as commits of their own.
  func settle(_ done: (next: TreeReference, revision: Int, operations: [TreeOperation])?) throws {
    let before = views
    let published = try collectDeltas()
    if let done {
      try step(to: done.next, done.operations, published[done.revision == commits ? -1 : done.revision] ?? [:])
      guard commits == done.revision else { throw fail("revision \(done.revision) answered, \(commits) reached") }
    }
    while let name = reference.due {
      deselectGoneRows()
      var next = reference
      (next.isStructural, next.rebinned) = (false, [])
      next.evictDue(name)
      try step(to: next, [], published[commits + 1] ?? [:])
    }
    guard Int(harness.engine.catalog.revision) == commits, published.keys.allSatisfy({ $0 <= commits }) else {
      throw fail("revision \(commits) expected, not \(harness.engine.catalog.revision), with \(published)")
    }
    try compareCounts()
    try watchNew()
    try compareMirrors()
    try compareEngine(isWhole: commits % 8 == 0)
    try compareSelections(before)
    touched = []
  }

  /// Adopts the state after a commit, or after an operation without effect, with its deltas.
  private func step(to next: TreeReference, _ operations: [TreeOperation], _ deltas: [String: Value]) throws {
    self.deltas = deltas
    let before = (reference, views)
    var next = next
    for (name, feed) in before.0.feeds where feed.hasIdentity {
      // The rows of a redefined feed are followed from operation to operation.
      if !next.rebinned.contains(name) { next.reunite(name, since: feed) }
    }
    try checkSections(next, before.0)
    reference = next
    views = next.views()
    for name in next.feedsWithoutManagedRows(since: before.0) {
      settled[name, default: []].insert(commits + 1)
      if mirrors[name] != nil && deltas[name] == nil { throw fail("\(name) has no new revision") }
      selections[name] = []
    }
    let changed = try compareDeltas(before.1, operations)
    if next.isStructural || changed { commits += 1 }
    try applyDeltas()
  }

  /// Reads the frames of the watcher: at most one delta of each feed a commit.
  func collectDeltas() throws -> Deltas {
    var published: Deltas = [:]
    for text in harness.take(watcher) {
      guard let frame = Value(text), let params = frame["params"], let feed = params["feed"]?.string else {
        throw fail("an unexpected frame: \(text)")
      }
      switch frame["method"]?.string {
      case "delta":
        let revision = params["revision"]?.int ?? -1
        if published[revision]?[feed] != nil { throw fail("a second delta of one commit: \(text)") }
        published[revision, default: [:]][feed] = params
        statistics["deltas", default: 0] += 1
      case "selection": told[feed] = (params["selected"]?.items ?? []).map(\.path)
      case "bookmark" where generator.now != nil: break
      default: throw fail("an unexpected frame: \(text)")
      }
    }
    return published
  }

  /// Checks that as many sections as possible stay. Which of those that change their order are deleted and added again is the
  /// daemon's choice.
  private func checkSections(_ next: TreeReference, _ before: TreeReference) throws {
    for (name, delta) in deltas {
      guard before.exists(name), next.exists(name), before.instance(of: name) == next.instance(of: name) else {
        continue
      }
      let change = Change(delta)
      if change.hasSameSections { continue }
      guard let old = before.feeds[name], let new = next.feeds[name] else {
        throw fail("the bin \(name) deletes its section: \(change)")
      }
      if old.collection != nil {
        try checkBins(old, new, change)
      } else if old.managed != nil {
        try checkSections(old, new, change)
      } else if old.children != nil {
        try checkChildren(of: name, before, next, change, isCommit: true)
      } else {
        throw fail("\(name) deletes its section: \(change)")
      }
    }
  }

  private func checkBins(_ old: TreeFeed, _ new: TreeFeed, _ change: Change) throws {
    let places = old.bins.compactMap { bin in new.bins.firstIndex { $0.instance == bin.instance } }
    let kept = old.bins.count - change.sectionsDeleted.count
    if trace.last?.hasPrefix("transaction") == true { return }
    if kept < TreeChange.longestRising(places) { throw fail("more bins could stay: \(change)") }
  }

  /// Checks that as many sections of a managed feed as possible stay.
  private func checkSections(_ old: TreeFeed, _ new: TreeFeed, _ change: Change) throws {
    let places = old.sets.compactMap { section in new.sets.firstIndex { $0.name == section.name } }
    let kept = old.sets.count - change.sectionsDeleted.count
    if kept != TreeChange.longestRising(places) { throw fail("more sections could stay: \(change)") }
  }

  /// Checks that a provider deletes no section of as many children as possible, unless the child deletes it.
  func checkChildren(
    of name: String, _ before: TreeReference, _ next: TreeReference, _ change: Change, isCommit: Bool
  ) throws {
    let gone = Set(change.sectionsDeleted.map(Int.init))
    var expected: Set<Int> = []
    let after = (next.feeds[name]?.shown ?? []).map { next.instance(of: $0) }
    var (section, staying, places) = (0, 0, [Int]())
    for child in before.feeds[name]?.shown ?? [] {
      let instance = before.instance(of: child)
      let count = (isCommit ? views[child] : before.view(child))?.sections.count ?? 0
      let range = section..<(section + count)
      section += count
      guard let place = after.firstIndex(of: instance) else {
        expected.formUnion(range)
        continue
      }
      places.append(place)
      let own = isCommit ? deltas[child].map { Change($0).sectionsDeleted } ?? [] : []
      if own.count < count && range.allSatisfy(gone.contains) {
        expected.formUnion(range)
      } else {
        expected.formUnion(own.map { range.lowerBound + Int($0) })
        staying += 1
      }
    }
    if staying < TreeChange.longestRising(places) { throw fail("more children of \(name) could stay: \(change)") }
    if gone != expected { throw fail("\(name) deletes \(gone.sorted()), not \(expected.sorted()): \(change)") }
  }

  /// Checks every delta against the change of its feed, and that unchanged feeds have none. Returns whether anything changed.
  private func compareDeltas(_ before: [String: TreeView], _ operations: [TreeOperation]) throws -> Bool {
    changes = [:]
    var changed = false
    for (name, old) in before {
      let survives = views[name]?.instance == old.instance
      let new = survives ? views[name] ?? old : TreeView(instance: old.instance, sections: [])
      let isDifferent = new != old
      if isDifferent || !survives || deltas[name] != nil { touched.insert(name) }
      changed = changed || isDifferent
      // A feed that the previous operation defined is not watched yet.
      guard mirrors[name] != nil else { continue }
      guard let delta = deltas[name] else {
        if isDifferent || !survives { throw fail("\(name) changed without a delta: \(old.short) to \(new.short)") }
        continue
      }
      if (delta["ended"]?.bool == true) == survives { throw fail("wrong member ended of \(name): \(delta)") }
      if survives { changed = true }
      do {
        changes[name] = try TreeChange(Change(delta), from: old, to: new)
      } catch let error as TreeChange.Violation {
        throw fail("the delta of \(name): \(error)")
      }
    }
    for (name, change) in changes {
      // Rows of a collection whose bins were redefined among other operations are not compared.
      let isRebinned = operations.count > 1 && reference.rebinned.contains(name)
      if !isRebinned || reference.feeds[name].map({ $0.collection == nil && $0.list == nil }) ?? true {
        try checkNeed(name, change, isTransaction: operations.count > 1)
      }
    }
    return changed
  }

  /// An unchanged row may be listed as updated only in a commit that redefined a collection or list whose rows are not compared,
  /// and only if a source lists it, or a transaction deleted its section in the source.
  private func checkNeed(_ name: String, _ change: TreeChange, isTransaction: Bool) throws {
    if let feed = reference.feeds[name], feed.definition.content.movesFewest, change.change.sectionsDeleted.isEmpty {
      do { try change.checkFewest() } catch { throw fail("\(name): \(error)") }
    }
    if change.needless.isEmpty { return }
    if reference.rebinned.isEmpty { throw fail("\(name) lists unchanged rows: \(change.change)") }
    func needless(of below: TreeChange?) -> Set<UInt64> {
      guard let below else { return [] }
      return isTransaction ? below.needless.union(below.unchangedDeparted) : below.needless
    }
    var allowed: Set<UInt64> = []
    if let feed = reference.feeds[name] {
      for source in feed.definition.sources {
        let below = needless(of: changes[source])
        let instance = reference.instance(of: source)
        if case .slots(let slots) = feed.definition.content {
          let type = slots.contents.first { $0.feed == source }?.type ?? ""
          for token in below { allowed.insert(mix(instance, type.token, token)) }
        } else {
          for token in below { allowed.insert(feed.token(token, of: instance)) }
        }
      }
    } else if let slash = name.firstIndex(of: "/") {
      allowed = needless(of: changes[String(name[..<slash])])
    }
    if !change.needless.isSubset(of: allowed) { throw fail("\(name) lists unchanged rows: \(change.change)") }
  }
}

extension TreeDefinition.Content {
  /// Whether each delta moves as few rows as possible, however many rows of the sources moved.
  fileprivate var movesFewest: Bool {
    switch self {
    case .slots, .view, .list: true
    default: false
    }
  }
}
