import FeedChange

/// The graph of feeds that show rows of other feeds.
///
/// Invariant: the parents mirror the sources of every linked feed; there is no cycle; the rank of a feed exceeds those
/// of its sources; its repeats are the sum of theirs; its steps are the sum of those of its parents, with what these
/// take themselves; the steps above its bins and its sources with managed rows are counted; a cached route of the current
/// version is valid.
final class FeedGraph {
  /// A feed that shows the rows of another feed, and the place of that feed among its sources.
  struct Parent: Equatable {
    let feed: FeedNumber
    let place: Int
  }

  private struct Node {
    var rank = 0
    /// The sum of the repeats of the sources.
    var repeatsOfSources = 0
    var repeats: Int { max(1, saturatingSum(repeatsOfSources, 0)) }
    /// By name, then by place.
    var parents: [Parent] = []
    var route: Route? { didSet { unretainedRoute = route.map { .passUnretained($0) } } }
    private(set) var unretainedRoute: Unmanaged<Route>?
    /// The steps that all feeds above may take for the change of one row.
    var steps = 0
    /// The collection of a bin; the number of bins of a collection, and the steps of all feeds above these.
    var collection: FeedNumber?
    var bins = 0
    var stepsOfBins = 0
    /// The steps that all feeds above may take for the change of one element, which may have a row in each bin.
    var stepsOfElement: Int { steps &* max(1, bins) &+ stepsOfBins }
    /// The feeds above that derive changes of their own; nil if not known.
    var derivations: Derivations?
    /// See ``FeedGraph/copyCount(of:)``, for a version of the graph.
    var copies: (version: UInt64, count: Int)?
    /// The number of sources with rows of managed feeds, and one more for a managed feed.
    var managedSources = 0
  }

  let table: FeedTable
  /// Whether row counts may have changed. Shared by sections that compute their counts.
  let counts = RowCounts()
  /// Incremented when a feed is defined, undefined, redefined or gets other children, and when that is undone.
  private(set) var version: UInt64 = 0
  /// The number of linked views whose filters may take many steps.
  private(set) var slowViews = 0
  /// The number of linked views that keep the rows of their sources in an index.
  private(set) var indexedViews = 0
  /// The number of feeds for which all feeds above may take ``manyStepsOfElement`` for the change of one element.
  private(set) var feedsShownOften = 0
  /// The feeds that evict elements by time, and changed since ``Commit/updateTimed(_:)``.
  var timed: Set<FeedNumber> = []
  /// Whether the log stores the rows of managed feeds, as in a group.
  var keepsManagedRows = false
  /// The rules by which requests are executed (``ExecutionRules``).
  var rules = ExecutionRules.current
  /// Whether requests count rows of managed feeds: by rules before 6 they do.
  var countsManagedRows: Bool { keepsManagedRows || rules < 6 }
  /// Whether the feeds whose answer the open commit changed had managed rows before it.
  private var hadManagedRows: [FeedNumber: Bool] = [:]
  /// By feed number.
  private var nodes: [Node] = []

  init(table: FeedTable) {
    self.table = table
    nodes.append(Node())
    assert(table.list.number == 0, "the list of feeds has a node of its own")
  }

  /// Ends a structural change or its rollback.
  func structureDidChange() {
    version &+= 1
    counts.advance()
    #if CHECK_INVARIANTS
      if nodes.count <= 64 { checkInvariants() }
    #endif
  }

  /// Creates a feed or bin without parents, under a new number.
  /// - Parameter rank: 1 for a bin, which is published after its collection.
  func makeFeed(name: String, rank: Int, revision: UInt64, _ kind: (FeedNumber) -> any FeedKind) -> Feed {
    let feed = table.makeFeed(name: name, revision: revision, kind)
    while nodes.count <= feed.number { nodes.append(Node()) }
    assert(nodes[feed.number].parents.isEmpty, "the feed that had this number before still has parents")
    nodes[feed.number] = Node(rank: rank, bins: feed.kind.bins.count)
    if feed.kind is ManagedKind { nodes[feed.number].managedSources = 1 }
    return feed
  }

  /// The position in the order of publication, above that of every source.
  func rank(of feed: FeedNumber) -> Int { nodes[feed].rank }

  /// An upper bound for how often the feed shows any other feed: the sum over its sources, at least 1.
  func repeats(of feed: FeedNumber) -> Int { nodes[feed].repeats }

  /// The steps that all feeds above may take for the change of one row. O(1).
  func stepsAbove(_ feed: FeedNumber) -> Int { nodes[feed].steps }

  /// The steps that the bins of a feed and all feeds above may take for the change of one element. O(1).
  func stepsOfElement(of feed: FeedNumber) -> Int {
    nodes[feed].stepsOfElement &+ max(1, nodes[feed].bins) &* Self.stepsOfBin
  }

  /// The steps of a bin for the change of one row.
  private static let stepsOfBin = 100
  /// The steps that take about a tenth of a millisecond.
  private static let manyStepsOfElement = 100_000

  /// Records the collection of a new bin, above which there are no feeds.
  func setCollection(_ collection: FeedNumber, of bin: Feed) { nodes[bin.number].collection = collection }

  /// Changes the steps or the bins of a feed.
  private func changeSteps(of feed: FeedNumber, _ change: (inout Node) -> Void) {
    let wasOften = nodes[feed].stepsOfElement >= Self.manyStepsOfElement
    change(&nodes[feed])
    let isOften = nodes[feed].stepsOfElement >= Self.manyStepsOfElement
    if isOften != wasOften { feedsShownOften += isOften ? 1 : -1 }
  }

  /// The feeds above that derive changes of their own. O(1) until the structure changes, then O(feeds above).
  func derivations(above feed: FeedNumber) -> Derivations {
    if let known = nodes[feed].derivations, known.version == version { return known }
    let found = findDerivations(above: feed)
    nodes[feed].derivations = found
    return found
  }

  /// The number of ways in which composed and segmented feeds that show a feed or its bins through several of their children show it.
  /// Such a feed has a change of its own; others share that of their only source that changed. O(1) until the structure changes, then
  /// O(feeds above).
  func copyCount(of feed: Feed) -> Int {
    if let known = nodes[feed.number].copies, known.version == version { return known.count }
    let roots = [feed] + feed.kind.bins
    var ways: [FeedNumber: Int] = [:]
    for root in roots where hasParents(root.number) {
      // An element is in one bin, or in few.
      for (above, paths) in waysAbove(root) { ways[above.number] = max(ways[above.number] ?? 0, paths) }
    }
    var children: [FeedNumber: Int] = [:]
    for number in roots.map(\.number) + ways.keys {
      for parent in nodes[number].parents where table[parent.feed].derived?.shows(parent.place) == true {
        children[parent.feed, default: 0] += 1
      }
    }
    let count = ways.reduce(0) { count, above in
      guard children[above.key] ?? 0 > 1, table[above.key].kind is ProviderKind else { return count }
      return saturatingSum(count, above.value)
    }
    nodes[feed.number].copies = (version, count)
    return count
  }

  /// Whether a feed is managed, or shows rows of a managed feed. O(1).
  func hasManagedRows(_ feed: FeedNumber) -> Bool { nodes[feed].managedSources > 0 }

  /// Whether it was or did before the open commit changed that. O(1).
  func lostManagedRows(_ feed: FeedNumber) -> Bool { hadManagedRows[feed] ?? false }

  /// The feeds that lost the last source with managed rows by the open commit; none unless it changes the structure.
  var settled: Set<FeedNumber> {
    if hadManagedRows.isEmpty { return [] }
    return Set(hadManagedRows.lazy.filter { $1 && !self.hasManagedRows($0) && !self.table[$0].isGone }.map(\.key))
  }

  /// Ends a commit or its rollback.
  @inline(__always)
  func didClose() { if !hadManagedRows.isEmpty { hadManagedRows.removeAll() } }
  func parents(of feed: FeedNumber) -> [Parent] { nodes[feed].parents }
  func hasParents(_ feed: FeedNumber) -> Bool { !nodes[feed].parents.isEmpty }

  /// Whether any watch, parent or selection depends on the changes of a feed.
  func isSeen(_ feed: Feed) -> Bool { feed.hasHistory || hasParents(feed.number) || !feed.selection.isEmpty }

  /// Adds a feed to the parents of its sources.
  func link(_ feed: Feed) {
    guard let derived = feed.derived else { return }
    if let view = derived as? ViewKind { count(view, 1) }
    let steps = nodes[feed.number].steps + derived.stepsPerRow
    assert(showing(feed).isDisjoint(with: derived.sources.map(\.feed.number)), "\(feed.name) would form a cycle")
    for (place, source) in derived.sources {
      addSteps(steps, to: source)
      if hasManagedRows(source.number) { countManagedSource(of: feed.number, 1) }
      insert(Parent(feed: feed.number, place: place), above: source.number)
      raiseRank(of: feed.number, above: nodes[source.number].rank)
    }
    let former = nodes[feed.number].repeats
    nodes[feed.number].repeatsOfSources = sumOfRepeats(below: feed)
    if nodes[feed.number].repeats != former { repeatsDidChange(of: feed, from: former) }
  }

  /// Updates the repeats of the feeds above. A rollback links feeds in any order, so these may have been computed from others of this
  /// feed. O(feeds above): each may have thousands of other sources.
  private func repeatsDidChange(of feed: Feed, from former: Int) {
    var formerly = [feed.number: former]
    for source in [feed] + waysAbove(feed).map(\.feed) {
      guard let former = formerly[source.number] else { continue }
      let difference = nodes[source.number].repeats - former
      if difference == 0 { continue }
      for parent in nodes[source.number].parents {
        if formerly[parent.feed] == nil { formerly[parent.feed] = nodes[parent.feed].repeats }
        nodes[parent.feed].repeatsOfSources += difference
      }
    }
  }

  /// Adds a parent of a source, in an order that a restart keeps: errors name the first that they find. O(parents).
  private func insert(_ parent: Parent, above source: FeedNumber) {
    let (name, parents) = (table[parent.feed].name, nodes[source].parents)
    let at = parents.indices.partitionPoint { (table[parents[$0].feed].name, parents[$0].place) < (name, parent.place) }
    nodes[source].parents.insert(parent, at: at)
  }

  private func sumOfRepeats(below feed: Feed) -> Int {
    // No overflow: each of them saturates.
    (feed.derived?.sources ?? []).reduce(0) { $0 + nodes[$1.feed.number].repeats }
  }

  func unlink(_ feed: Feed) {
    guard let derived = feed.derived else { return }
    if let view = derived as? ViewKind { count(view, -1) }
    let steps = nodes[feed.number].steps + derived.stepsPerRow
    for (_, source) in derived.sources {
      nodes[source.number].parents.removeAll { $0.feed == feed.number }
      addSteps(-steps, to: source)
      if hasManagedRows(source.number) { countManagedSource(of: feed.number, -1) }
    }
  }

  /// Exchanges the sources of a feed, or the steps that it takes.
  func relink(_ feed: Feed, _ exchange: () -> Void) {
    unlink(feed)
    exchange()
    link(feed)
  }

  private func countManagedSource(of feed: FeedNumber, _ difference: Int) {
    let had = hasManagedRows(feed)
    nodes[feed].managedSources += difference
    assert(nodes[feed].managedSources >= 0, "more sources with managed rows were removed than were added")
    if hasManagedRows(feed) == had { return }
    if hadManagedRows[feed] == nil { hadManagedRows[feed] = had }
    for parent in nodes[feed].parents { countManagedSource(of: parent.feed, difference) }
  }

  private func count(_ view: ViewKind, _ difference: Int) {
    if view.isSlow { slowViews += difference }
    if view.hasIndex { indexedViews += difference }
  }

  /// Adds steps of feeds above to a feed, and to those below it once for each path.
  private func addSteps(_ steps: Int, to feed: Feed) {
    changeSteps(of: feed.number) { $0.steps += steps }
    if let collection = nodes[feed.number].collection { changeSteps(of: collection) { $0.stepsOfBins += steps } }
    assert(nodes[feed.number].steps >= 0, "more steps were removed than were added")
    guard let derived = feed.derived else { return }
    for (_, source) in derived.sources { addSteps(steps, to: source) }
  }

  private func raiseRank(of feed: FeedNumber, above source: Int) {
    guard nodes[feed].rank <= source else { return }
    nodes[feed].rank = source + 1
    for parent in nodes[feed].parents { raiseRank(of: parent.feed, above: source + 1) }
  }

  /// Updates the feeds that show `feed`, after sections of `feed` may have been added or removed.
  func sectionsDidChange(of feed: Feed) {
    changeSteps(of: feed.number) { $0.bins = feed.kind.bins.count }
    for parent in nodes[feed.number].parents {
      let parent = table[parent.feed]
      if parent.derived?.sourceSectionsDidChange() == true { sectionsDidChange(of: parent) }
    }
  }

  /// Whether `other` is `feed` or shows its rows, directly or through others.
  func isShown(_ feed: Feed, by other: Feed) -> Bool { showing(feed).contains(other.number) }

  /// The feed and all that show its rows, directly or through others. O(feeds above).
  func showing(_ feed: Feed) -> Set<FeedNumber> {
    var seen: Set<FeedNumber> = [feed.number]
    var waiting = [feed.number]
    while let next = waiting.popLast() {
      for parent in nodes[next].parents where seen.insert(parent.feed).inserted { waiting.append(parent.feed) }
    }
    return seen
  }

  /// Whether a feed, and each feed whose rows it shows, directly or through others, is a match. O(feeds shown).
  func isEveryShown(by feed: Feed, _ isMatch: (Feed) -> Bool) -> Bool {
    var seen: Set<FeedNumber> = [feed.number]
    var waiting = [feed]
    while let next = waiting.popLast() {
      if !isMatch(next) { return false }
      for shown in next.shownFeeds where seen.insert(shown.number).inserted { waiting.append(shown) }
    }
    return true
  }

  /// Calls `body` with the route of row changes of a feed, without a count of references. O(1) if it is cached.
  @inline(__always)
  func withRoute<R>(of feed: Feed, _ body: (Route) -> R) -> R {
    if let known = nodes[feed.number].unretainedRoute, known._withUnsafeGuaranteedRef({ $0.version }) == version {
      return known._withUnsafeGuaranteedRef(body)
    }
    return body(route(of: feed))
  }

  /// The route of row changes of a feed, cached until the structure changes. O(1) if cached.
  func route(of feed: Feed) -> Route {
    if let known = nodes[feed.number].route, known.version == version { return known }
    let route = makeRoute(of: feed)
    nodes[feed.number].route = route
    return route
  }

  private func makeRoute(of base: Feed) -> Route {
    var found: [(feed: Feed, source: FeedNumber, place: Int)] = []
    var reached: Set<FeedNumber> = []
    var waiting = [base.number]
    while let source = waiting.popLast() {
      for parent in nodes[source].parents {
        let feed = table[parent.feed]
        guard feed.derived?.shows(parent.place) == true else { continue }
        guard reached.insert(parent.feed).inserted else { return Route(version: version, steps: [], isWhole: false) }
        found.append((feed, source, parent.place))
        waiting.append(parent.feed)
      }
    }
    found.sort { (nodes[$0.feed.number].rank, $0.feed.number) < (nodes[$1.feed.number].rank, $1.feed.number) }
    var steps: [Route.Step] = []
    var slots = 1
    var placed: [FeedNumber: (slot: Int, shift: UInt32)] = [base.number: (0, 0)]
    for (feed, source, place) in found {
      guard let from = placed[source] else { preconditionFailure("a feed is ranked below its source") }
      var (slot, shift) = (slots, UInt32(0))
      if let offset = feed.derived?.offset(ofSectionsAt: place) {
        (slot, shift) = (from.slot, from.shift &+ UInt32(offset))
      } else {
        slots += 1
      }
      placed[feed.number] = (slot, shift)
      steps.append(
        Route.Step(
          feed: .passUnretained(feed), slots: (feed.kind as? SlotsKind).map { .passUnretained($0) },
          sourceSlot: from.slot, sourceShift: from.shift, place: place, slot: slot, shift: shift))
    }
    return Route(version: version, steps: steps, isWhole: true)
  }
}

/// A counter that is incremented when the number of rows or sections of any feed may have changed.
final class RowCounts {
  private(set) var version: UInt64 = 0
  /// Incremented by each operation that changes rows, except those of `$feeds`.
  private(set) var rowVersion: UInt64 = 0
  /// Whether an operation of the open commit changed rows. Kinds with rows of their own are then behind their sources.
  private(set) var isChanging = false
  /// The last version that was given. Each is given once.
  private var last: UInt64 = 0
  /// What holds for the open commit, while others work, and the version that they began with.
  private var hidden: (version: UInt64, isChanging: Bool, others: UInt64)?
  /// Whether counts may depend on elements, as those of views do.
  private var dependOnElements = false

  @inline(__always)
  func advance() {
    last &+= 1
    version = last
  }

  @inline(__always)
  func didChange(onlyUpdates: Bool) {
    rowVersion &+= 1
    listDidChange(onlyUpdates: onlyUpdates)
  }

  func listDidChange(onlyUpdates: Bool) {
    isChanging = true
    if !onlyUpdates || dependOnElements { advance() }
  }

  /// Shows the counts before the open commit.
  func hide() {
    let version = version
    advance()
    hidden = (version, isChanging, self.version)
    isChanging = false
  }

  /// Shows the counts of the open commit again. What was computed of them is still known: otherwise a view of another one would evaluate
  /// all rows of that after each stop.
  func show() {
    guard let hidden = hidden.take() else { return assertionFailure("no counts were hidden") }
    isChanging = hidden.isChanging
    if version == hidden.others { version = hidden.version } else { advance() }
  }

  @inline(__always)
  func endCommit() { isChanging = false }

  /// Records that there is a feed whose count depends on elements.
  func viewsExist() { dependOnElements = true }
}

extension FeedGraph {
  /// O(feeds · sources).
  func checkInvariants() {
    precondition(
      feedsShownOften == nodes.count { $0.stepsOfElement >= Self.manyStepsOfElement },
      "the number of feeds that are shown often is wrong")
    for feed in table.byName.values {
      for (place, source) in feed.derived?.sources ?? [] {
        precondition(
          nodes[source.number].parents.contains(Parent(feed: feed.number, place: place)), "a source lacks a parent")
        precondition(nodes[feed.number].rank > nodes[source.number].rank, "a feed is ranked below its source")
      }
      precondition(
        nodes[feed.number].repeatsOfSources == sumOfRepeats(below: feed), "the bound of the repeats is wrong")
      for parent in nodes[feed.number].parents {
        precondition(
          table[parent.feed].derived?.sources.contains { $0.place == parent.place && $0.feed === feed } == true,
          "a parent has another source at that place")
      }
      let steps = nodes[feed.number].parents.reduce(0) {
        $0 + nodes[$1.feed].steps + (table[$1.feed].derived?.stepsPerRow ?? 0)
      }
      precondition(nodes[feed.number].steps == steps, "the steps above a feed are wrong")
      let bins = feed.kind.bins
      precondition(
        nodes[feed.number].bins == bins.count
          && nodes[feed.number].stepsOfBins == bins.reduce(0) { $0 + stepsAbove($1.number) },
        "the steps above the bins of a feed are wrong")
      let managed = (feed.derived?.sources ?? []).count { hasManagedRows($0.feed.number) }
      precondition(
        nodes[feed.number].managedSources == managed + (feed.kind is ManagedKind ? 1 : 0),
        "the number of sources with managed rows is wrong")
      guard let route = nodes[feed.number].route, route.version == version else { continue }
      let fresh = makeRoute(of: feed)
      precondition(
        route.isWhole == fresh.isWhole && route.steps.count == fresh.steps.count
          && zip(route.steps, fresh.steps).allSatisfy { $0.slot == $1.slot && $0.shift == $1.shift },
        "a route is out of date")
    }
  }
}
