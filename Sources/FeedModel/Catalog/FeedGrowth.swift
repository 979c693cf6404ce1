import FeedChange
import FeedJSON

/// Limits on feeds that show other feeds. A feed may be a child of many feeds, so without limits a few dozen small
/// definitions could show one row more often than an integer can count.
extension FeedGraph {
  /// Throws if the children exceed a limit, in the feed itself or in a feed that shows it.
  ///
  /// O(children) for a new feed whose sources show no feed twice, otherwise O(feeds below). For the feeds above O(their sources),
  /// and O(feeds below) for each of which the bounds of its sources exceed the limit.
  /// - Parameters:
  ///   - feed: nil while it is being defined.
  ///   - showing: the children whose sections it will show; none for a slots feed, which has one section.
  ///   - steps: the steps that it will take for the change of one row.
  ///   - pace: stops in between, as nothing is changed.
  func checkGrowth(
    of feed: Feed?, named name: String, children: [Feed], showing: [Feed], steps: Int, _ limits: Limits, _ pace: Pace
  ) throws(FeedError) {
    if limits.maxDerivedSteps < .max { try checkSteps(of: feed, steps, sources: children, limits, pace) }
    let sections = showing.reduce(0) { $0 + countedSections(of: $1) }
    var bound = children.reduce(0) { saturatingSum($0, repeats(of: $1.number)) }
    if sections > limits.maxSections { throw tooManySections("\"\(name)\"", limits) }
    if bound > limits.maxRepeats { bound = exactRepeats(below: children, pace) }
    if bound > limits.maxRepeats { throw tooManyRepeats("\"\(name)\"", limits) }
    try checkLevels(of: feed, named: name, children: children, limits, pace)
    guard let feed else { return }
    try checkParents(of: feed, sections: sections - countedSections(of: feed), limits, pace)
    try checkRepeats(above: feed, children, bound, limits, pace)
  }

  /// Throws if a feed above `feed` would show any feed too often.
  /// - Parameters:
  ///   - children: those that `feed` will have.
  ///   - bound: an upper bound for how often it will then show any feed.
  private func checkRepeats(
    above feed: Feed, _ children: [Feed], _ bound: Int, _ limits: Limits, _ pace: Pace
  ) throws(FeedError) {
    // Upper bounds of `feed` and those above it, and of their other sources if these are not the known ones. Each of thousands of feeds
    // above may show a feed with thousands of children, whose known bound is the number of these: they are not walked for each.
    var bounds = [feed.number: max(1, bound)]
    for (parent, paths) in waysAbove(feed, pace) {
      var repeats = saturatingSum(repeats(of: parent.number), saturatingProduct(paths, bound))
      if repeats > limits.maxRepeats {
        let sources = parent.derived?.sources.map(\.feed) ?? []
        pace.spend(sources.count / Self.edgesOfAUnit)
        repeats = sources.reduce(0) { sum, source in
          var most = bounds[source.number] ?? self.repeats(of: source.number)
          if most > limits.maxRepeats && bounds[source.number] == nil {
            most = exactRepeats(below: source.derived?.sources.map(\.feed) ?? [], pace)
            bounds[source.number] = most
          }
          return saturatingSum(sum, most)
        }
        if repeats > limits.maxRepeats { repeats = exactRepeats(below: sources, pace, feed, children) }
      }
      if repeats > limits.maxRepeats { throw tooManyRepeats(mentionAbove(parent), limits) }
      bounds[parent.number] = max(1, repeats)
    }
  }

  /// The feeds above `feed` that derive changes of their own. O(feeds above).
  func findDerivations(above feed: FeedNumber) -> Derivations {
    var found = Derivations(version: version)
    for (parent, paths) in waysAbove(table[feed]) where !(parent.kind is ProviderKind) {
      found.count = saturatingSum(found.count, paths)
      if let judge = (parent.kind as? ViewKind)?.slowJudge { found.judges.append((judge, paths)) }
    }
    return found
  }

  /// The number of ways in which feeds that derive changes of their own show a feed or its bins.
  func derivationCount(of feed: Feed) -> Int {
    feed.kind.bins.reduce(derivations(above: feed.number).count) {
      saturatingSum($0, derivations(above: $1.number).count)
    }
  }

  /// Throws if the feeds above a source could take too many steps for the change of one row.
  /// - Parameter steps: those that the feed itself takes when it has these sources.
  private func checkSteps(
    of feed: Feed?, _ steps: Int, sources: [Feed], _ limits: Limits, _ pace: Pace
  ) throws(FeedError) {
    func below(_ feed: Feed) -> [Feed] { feed.derived?.sources.map(\.feed) ?? [] }
    let above = feed.map { stepsAbove($0.number) } ?? 0
    var added: [FeedNumber: Int] = [:]
    func add(_ steps: Int, below roots: [Feed]) {
      countPaths(from: roots, topologicalOrder(from: roots, pace, next: below), pace, next: below) { feed, paths in
        // A change of a collection is also one of its bins.
        added[(table.collection(of: feed) ?? feed).number, default: 0] += (above + steps) * paths
      }
    }
    add(steps, below: sources)
    if let feed, let former = feed.derived { add(-former.stepsPerRow - 2 * above, below: below(feed)) }
    var exceeding: [(feed: Feed, total: Int)] = []
    for (number, more) in added where more > 0 {
      let family = [table[number]] + table[number].kind.bins
      let total = family.reduce(more) { $0 + stepsAbove($1.number) }
      if total > limits.maxDerivedSteps { exceeding.append((table[number], total)) }
    }
    // A restart numbers the feeds anew, but keeps their names.
    guard let (feed, total) = exceeding.min(by: { $0.feed.name < $1.feed.name }) else { return }
    throw limits.exceeded(
      \.maxDerivedSteps,
      "the feeds that show \(table.mention(feed, or: "one of its feeds")) could take "
        + "\(counted(total, "step")) for each changed row; define fewer views and slots over it")
  }

  /// The number of ways in which feeds list the rows of this one when it gets other sections: itself and all feeds above.
  func listings(of feed: Feed) -> Int { waysAbove(feed).reduce(1) { saturatingSum($0, $1.paths) } }

  /// Throws if a feed that shows `feed` cannot take `sections` more sections.
  func checkParents(of feed: Feed?, sections: Int, _ limits: Limits, _ pace: Pace? = nil) throws(FeedError) {
    guard let feed, sections > 0, hasParents(feed.number) else { return }
    for (parent, paths) in waysAbove(feed, throughSections: true, pace) {
      let more = saturatingProduct(paths, sections)
      try checkSections(of: parent, adding: more, limits)
    }
  }

  /// Throws if a feed that shows the sections of `feed` now has too many.
  func checkSections(above feed: Feed, _ limits: Limits) throws(FeedError) {
    for (parent, _) in waysAbove(feed, throughSections: true) { try checkSections(of: parent, limits) }
  }

  /// Throws if a feed above the changed one has too many sections. Those that count are found only if all are too many.
  private func checkSections(of parent: Feed, adding more: Int = 0, _ limits: Limits) throws(FeedError) {
    if saturatingSum(parent.sectionCount, more) > limits.maxSections,
      saturatingSum(countedSections(of: parent), more) > limits.maxSections
    {
      throw tooManySections(mentionAbove(parent), limits)
    }
  }

  /// Throws if the children would nest feeds too deeply.
  ///
  /// The rank of a feed is an upper bound for the number of levels below it, so most checks need not walk these.
  private func checkLevels(
    of feed: Feed?, named name: String, children: [Feed], _ limits: Limits, _ pace: Pace
  ) throws(FeedError) {
    guard !children.isEmpty else { return }
    let above = feed.map { longestPath(from: [$0], pace) { parents(of: $0.number).map { table[$0.feed] } } } ?? 0
    let bound = children.reduce(0) { max($0, rank(of: $1.number)) }
    if bound + 1 + above <= limits.maxLevels { return }
    let below = longestPath(from: children, pace) { $0.derived?.sources.map(\.feed) ?? [] }
    if below + 1 + above <= limits.maxLevels { return }
    throw limits.exceeded(
      \.maxLevels,
      "\"\(name)\" would stand in \(grouped(below + 1 + above)) levels of feeds that show feeds; show feeds more "
        + "directly")
  }

  /// The number of steps of the longest path from any of `roots`. O(feeds reached).
  private func longestPath(from roots: [Feed], _ pace: Pace, next: (Feed) -> [Feed]) -> Int {
    var lengths: [FeedNumber: Int] = [:]
    for feed in topologicalOrder(from: roots, pace, next: next).reversed() {
      let further = next(feed)
      pace.spend(1 &+ further.count / Self.edgesOfAUnit)
      lengths[feed.number] = further.reduce(0) { max($0, (lengths[$1.number] ?? 0) + 1) }
    }
    return roots.reduce(0) { max($0, lengths[$1.number] ?? 0) }
  }

  /// A feed above the changed one in the text of an error.
  private func mentionAbove(_ feed: Feed) -> String { table.mention(feed, or: "a feed that shows it") }

  /// - Parameter subject: the feed as `FeedTable.mention` gives it.
  private func tooManySections(_ subject: String, _ limits: Limits) -> FeedError {
    limits.exceeded(\.maxSections, "\(subject) would have more sections; show fewer feeds in it")
  }

  /// - Parameter subject: the feed as `FeedTable.mention` gives it.
  private func tooManyRepeats(_ subject: String, _ limits: Limits) -> FeedError {
    limits.exceeded(
      \.maxRepeats,
      "\(subject) would show one feed more than \(counted(limits.maxRepeats, "time")); show feeds in fewer places")
  }

  /// The highest number of times that `roots` together show any one feed, as if `feed` had `children`.
  private func exactRepeats(below roots: [Feed], _ pace: Pace, _ feed: Feed? = nil, _ children: [Feed] = []) -> Int {
    func sources(_ of: Feed) -> [Feed] { of === feed ? children : of.derived?.sources.map(\.feed) ?? [] }
    var most = 1
    let order = topologicalOrder(from: roots, pace, next: sources)
    countPaths(from: roots, order, pace, next: sources) { most = max(most, $1) }
    return most
  }

  /// The feeds that show this feed, directly or through others, and the number of ways in which each does. O(feeds above).
  /// - Parameter throughSections: only feeds whose sections include those of this feed now.
  /// - Parameter pace: stops in between; nil while the feeds are half changed.
  func waysAbove(_ feed: Feed, throughSections: Bool = false, _ pace: Pace? = nil) -> [(feed: Feed, paths: Int)] {
    func above(_ feed: Feed) -> [Feed] {
      parents(of: feed.number).compactMap { parent in
        let above = table[parent.feed]
        guard throughSections else { return above }
        let hasSections = above.derived?.offset(ofSectionsAt: parent.place) != nil
        return hasSections && above.derived?.shows(parent.place) == true ? above : nil
      }
    }
    var found: [(feed: Feed, paths: Int)] = []
    let order = topologicalOrder(from: [feed], pace, next: above)
    countPaths(from: [feed], order, pace, next: above) { if $0 !== feed { found.append(($0, $1)) } }
    return found
  }

  /// The sources or parents of feeds that a walk looks at in a unit of work.
  private static let edgesOfAUnit = 8

  /// The feeds reachable from `roots`, each after all feeds that lead to it.
  private func topologicalOrder(from roots: [Feed], _ pace: Pace?, next: (Feed) -> [Feed]) -> [Feed] {
    var order: [Feed] = []
    var seen: Set<FeedNumber> = []
    func visit(_ feed: Feed) {
      guard seen.insert(feed.number).inserted else { return }
      let all = next(feed)
      pace?.spend(1 &+ all.count / Self.edgesOfAUnit)
      for further in all { visit(further) }
      order.append(feed)
    }
    for root in roots { visit(root) }
    return order.reversed()
  }

  /// Calls `body` with each feed and the number of paths that lead to it from `roots`.
  private func countPaths(
    from roots: [Feed], _ order: [Feed], _ pace: Pace?, next: (Feed) -> [Feed], _ body: (Feed, Int) -> Void
  ) {
    var paths: [FeedNumber: Int] = [:]
    for root in roots { paths[root.number, default: 0] += 1 }
    for feed in order {
      let count = paths[feed.number, default: 0]
      body(feed, count)
      let all = next(feed)
      pace?.spend(1 &+ all.count / Self.edgesOfAUnit)
      for further in all { paths[further.number] = saturatingSum(paths[further.number, default: 0], count) }
    }
  }
}

/// The ceiling of sums and products of path counts.
private let many = 1 << 30

func saturatingSum(_ a: Int, _ b: Int) -> Int { min(many, min(many, a) + min(many, b)) }
private func saturatingProduct(_ a: Int, _ b: Int) -> Int { min(many, min(many, a) * min(many, b)) }

/// The feeds above one feed that derive changes of their own: views and slots.
struct Derivations {
  /// The version of the graph that they belong to.
  let version: UInt64
  /// The number of ways in which they show the feed.
  var count = 0
  /// The filters of views that may take many steps over one element, and the number of ways in which these show the feed.
  var judges: [(judge: ViewJudge, paths: Int)] = []
}
