import FeedChange
import FeedModel

@testable import FeedEngine
@testable import ReferenceModel

/// What must hold after a commit.
extension TreeWorld {
  /// The deltas of the watcher since the last call: by revision, then by feed.
  typealias Deltas = [Int: [String: Value]]

  /// Takes the state after an operation that was carried out, and compares everything that can be seen with it.
  func settle(_ next: TreeReference, _ answer: Value, _ operations: [TreeOperation]) throws {
    try settle((next, answer["result"]?["revision"]?.int ?? -1, operations))
  }

  /// Takes the state after an operation, if there was one, and after the evictions that follow it, each a commit of its own.
  func settle(_ done: (next: TreeReference, revision: Int, operations: [TreeOperation])?) throws {
    let before = views
    let published = try collectDeltas()
    if let done {
      try step(to: done.next, done.operations, published[done.revision == commits ? -1 : done.revision] ?? [:])
      guard commits == done.revision else { throw fail("revision \(done.revision) answered, \(commits) reached") }
    }
    while let name = reference.due {
      var next = reference
      (next.isStructural, next.rebinned) = (false, [])
      next.evictDue(name)
      try step(to: next, [], published[commits + 1] ?? [:])
    }
    guard Int(harness.engine.catalog.revision) == commits, published.keys.allSatisfy({ $0 <= commits }) else {
      throw fail("revision \(commits) expected, not \(harness.engine.catalog.revision), with \(published)")
    }
    try watchNew()
    try compareMirrors()
    try compareEngine()
    try compareSelections(before)
  }

  /// Takes the state after one commit, or after an operation that was none, with its deltas.
  private func step(to next: TreeReference, _ operations: [TreeOperation], _ deltas: [String: Value]) throws {
    self.deltas = deltas
    let before = (reference, views)
    var next = next
    for (name, feed) in before.0.feeds where feed.hasIdentity && !next.rebinned.contains(name) {
      next.reunite(name, since: feed)
    }
    try renew(&next, before.0)
    reference = next
    views = next.views()
    let changed = try compareDeltas(before.1, operations)
    if next.isStructural || changed { commits += 1 }
    try applyDeltas()
  }

  /// Reads what came to the watcher: one delta of a feed for each commit at most.
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

  /// Where sections went out and came in again although what they show was there before and after, the rows are others: which
  /// children do so is the daemon's choice, as long as a largest number stays.
  private func renew(_ next: inout TreeReference, _ before: TreeReference) throws {
    for (name, delta) in deltas {
      guard let old = before.feeds[name], let new = next.feeds[name], old.instance == new.instance else { continue }
      let change = Change(delta)
      if change.sectionsDeleted.isEmpty { continue }
      if old.collection != nil {
        try checkBins(old, new, change)
        next.renewBins(of: name, before: old.bins, change)
      } else if old.children != nil {
        let renewed = try renewedChildren(of: name, before, next, change, isCommit: true)
        for child in renewed { next.feeds[name]?.stints[child, default: 0] += 1 }
      }
    }
  }

  private func checkBins(_ old: TreeFeed, _ new: TreeFeed, _ change: Change) throws {
    let places = old.bins.compactMap { bin in new.bins.firstIndex { $0.instance == bin.instance } }
    let kept = old.bins.count - change.sectionsDeleted.count
    if trace.last?.hasPrefix("transaction") == true { return }
    if kept < TreeChange.longestRising(places) { throw fail("more bins could stay: \(change)") }
  }

  /// The children that a provider showed before and after and whose sections nevertheless all went.
  func renewedChildren(
    of name: String, _ before: TreeReference, _ next: TreeReference, _ change: Change, isCommit: Bool
  ) throws -> [UInt64] {
    let gone = Set(change.sectionsDeleted.map(Int.init))
    let after = (next.feeds[name]?.shown ?? []).map { next.instance(of: $0) }
    var (section, staying, renewed, places) = (0, 0, [UInt64](), [Int]())
    for child in before.feeds[name]?.shown ?? [] {
      let instance = before.instance(of: child)
      let count = (isCommit ? views[child] : before.view(child))?.sections.count ?? 0
      let range = section..<(section + count)
      section += count
      guard let place = after.firstIndex(of: instance) else { continue }
      places.append(place)
      let ownGone = isCommit ? deltas[child].map { Change($0).sectionsDeleted.count } ?? 0 : 0
      if ownGone < count && range.allSatisfy(gone.contains) { renewed.append(instance) } else { staying += 1 }
    }
    if staying < TreeChange.longestRising(places) { throw fail("more children of \(name) could stay: \(change)") }
    return renewed
  }

  /// Every delta against what happened; none where nothing did. Returns whether anything changed.
  private func compareDeltas(_ before: [String: TreeView], _ operations: [TreeOperation]) throws -> Bool {
    changes = [:]
    var changed = false
    for (name, old) in before {
      let survives = views[name]?.instance == old.instance
      let new = survives ? views[name] ?? old : TreeView(instance: old.instance, sections: [])
      changed = changed || new != old
      // One that was defined by the operation before is not watched yet.
      guard mirrors[name] != nil else { continue }
      guard let delta = deltas[name] else {
        if new != old || !survives { throw fail("\(name) changed and nobody was told: \(old.short) to \(new.short)") }
        continue
      }
      if (delta["ended"]?.bool == true) == survives { throw fail("the end of \(name): \(delta)") }
      if survives { changed = true }
      do {
        changes[name] = try TreeChange(Change(delta), from: old, to: new)
      } catch let error as TreeChange.Violation {
        throw fail("the delta of \(name): \(error)")
      }
    }
    for (name, change) in changes {
      // Rows of a collection that got other bins among other operations are compared with nothing.
      let isRebinned = operations.count > 1 && reference.rebinned.contains(name)
      if !isRebinned || reference.feeds[name].map({ $0.collection == nil && $0.list == nil }) ?? true {
        try checkNeed(name, change)
      }
    }
    return changed
  }

  /// A row listed as updated that shows what it did is allowed only where a source says so: in slots where a row of a content
  /// moved, or has another type, which slots do not show.
  private func checkNeed(_ name: String, _ change: TreeChange) throws {
    if let feed = reference.feeds[name], case .slots = feed.definition.content, change.change.sectionsDeleted.isEmpty {
      do { try change.checkFewest() } catch { throw fail("\(name): \(error)") }
    }
    if change.needless.isEmpty { return }
    var allowed: Set<UInt64> = []
    if let feed = reference.feeds[name] {
      for source in feed.definition.sources {
        guard let below = changes[source] else { continue }
        if case .slots(let slots) = feed.definition.content {
          let type = slots.contents.first { $0.feed == source }?.type ?? ""
          for token in below.kept { allowed.insert(mix(feed.plans, type.token, token)) }
        } else {
          let instance = reference.instance(of: source)
          if case .view = feed.definition.content {
            for token in below.kept { allowed.insert(feed.token(token, of: instance)) }
          }
          for token in below.needless { allowed.insert(feed.token(token, of: instance)) }
        }
      }
    } else if let slash = name.firstIndex(of: "/") {
      allowed = changes[String(name[..<slash])]?.needless ?? []
    }
    if !change.needless.isSubset(of: allowed) { throw fail("\(name) lists what did not change: \(change.change)") }
  }
}
