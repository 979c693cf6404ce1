import FeedChange

/// Bounds on what feeds show through each other. A feed may hang under many, so a few dozen small definitions could otherwise
/// show one row more often than there are numbers.
extension Catalog {
  /// Refuses children for which there is no room: in the feed itself, or in one that shows it.
  ///
  /// O(children) for a new feed of feeds that show nothing twice, else O(feeds below); and as much for each feed above.
  /// - Parameters:
  ///   - feed: nil while it is being defined.
  ///   - children: all it will have.
  ///   - showing: the children whose sections will be its own; none for a slots feed, which is one section.
  func checkGrowth(of feed: Feed?, named name: String, children: [Feed], showing: [Feed]) throws(FeedError) {
    let sections = showing.reduce(0) { $0 + $1.sectionCount }
    let repeats = children.reduce(0) { Feed.saturatingSum($0, $1.repeats) }
    if sections > limits.maxSections { throw tooManySections(name) }
    if repeats > limits.maxRepeats && exactRepeats(below: children) > limits.maxRepeats { throw tooManyRepeats(name) }
    guard let feed else { return }
    try checkParents(of: feed, sections: sections - feed.sectionCount)
    for (parent, paths) in feed.pathsFromParents() {
      let bound = Feed.saturatingSum(parent.repeats, Feed.saturatingProduct(paths, repeats))
      parent.repeats = bound > limits.maxRepeats ? exactRepeats(below: parent.sources, feed, children) : bound
      if parent.repeats > limits.maxRepeats { throw tooManyRepeats(parent.name) }
    }
  }

  /// Refuses that `feed` gets so many more sections if a feed that shows it has no room for them.
  func checkParents(of feed: Feed, sections: Int) throws(FeedError) {
    if sections <= 0 { return }
    for (parent, paths) in feed.pathsFromParents(throughSections: true) {
      let more = Feed.saturatingProduct(paths, sections)
      if Feed.saturatingSum(parent.sectionCount, more) > limits.maxSections { throw tooManySections(parent.name) }
    }
  }

  private func tooManySections(_ name: String) -> FeedError {
    .limitExceeded(
      limit: "maxSections", value: limits.maxSections,
      reason:
        "\"\(name)\" would have more sections; show fewer feeds in it, or start feedd with a larger --max-sections")
  }

  private func tooManyRepeats(_ name: String) -> FeedError {
    .limitExceeded(
      limit: "maxRepeats", value: limits.maxRepeats,
      reason:
        "\"\(name)\" would show a feed more often; show feeds in fewer places, or start feedd with a larger --max-repeats"
    )
  }

  /// How often the feed that is shown most is shown by these together, as if `feed` had `children`.
  private func exactRepeats(below roots: [Feed], _ feed: Feed? = nil, _ children: [Feed] = []) -> Int {
    var order: [Feed] = []
    var seen: Set<ObjectIdentifier> = []
    func sources(_ of: Feed) -> [Feed] { of === feed ? children : of.sources }
    func visit(_ next: Feed) {
      guard seen.insert(ObjectIdentifier(next)).inserted else { return }
      for source in sources(next) { visit(source) }
      order.append(next)
    }
    for root in roots { visit(root) }
    var paths: [ObjectIdentifier: Int] = [:]
    for root in roots { paths[ObjectIdentifier(root), default: 0] += 1 }
    var most = 1
    for next in order.reversed() {
      let count = paths[ObjectIdentifier(next), default: 0]
      most = max(most, count)
      for source in sources(next) {
        let id = ObjectIdentifier(source)
        paths[id] = Feed.saturatingSum(paths[id, default: 0], count)
      }
    }
    return most
  }
}

extension Feed {
  /// Sums and products of counts of paths end here.
  private static let many = 1 << 30

  static func saturatingSum(_ a: Int, _ b: Int) -> Int { min(many, min(many, a) + min(many, b)) }
  static func saturatingProduct(_ a: Int, _ b: Int) -> Int { min(many, min(many, a) * min(many, b)) }

  /// The feeds that show this one, directly or through others, and on how many ways each does.
  /// - Parameter throughSections: only those among whose sections are this feed's now: a slots feed has one of its own.
  fileprivate func pathsFromParents(throughSections: Bool = false) -> [(feed: Feed, paths: Int)] {
    var order: [Feed] = []
    var seen: Set<ObjectIdentifier> = []
    func above(_ feed: Feed) -> [Feed] {
      let parents = feed.parents.filter { parent in
        !throughSections || !(parent.feed is SlotsFeed) && parent.feed.shows(place: parent.place)
      }
      return parents.map(\.feed)
    }
    func visit(_ feed: Feed) {
      guard seen.insert(ObjectIdentifier(feed)).inserted else { return }
      for parent in above(feed) { visit(parent) }
      order.append(feed)
    }
    visit(self)
    var paths = [ObjectIdentifier(self): 1]
    for feed in order.reversed() {
      for parent in above(feed) {
        let id = ObjectIdentifier(parent)
        paths[id] = Self.saturatingSum(paths[id, default: 0], paths[ObjectIdentifier(feed), default: 0])
      }
    }
    return order.dropLast().map { ($0, paths[ObjectIdentifier($0), default: 0]) }
  }
}
