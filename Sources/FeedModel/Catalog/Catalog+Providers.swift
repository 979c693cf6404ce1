import FeedChange

/// Where `insertChild` puts a child.
public enum ChildPlace: Sendable, Equatable {
  case end
  case index(Int)
  case before(String)
  case after(String)
}

/// The operations on composed and segmented feeds. Each leaves its change in `result` and, when it throws, nothing changed.
extension Catalog {
  /// Hangs a feed or bin under a provider (method `insertChild`).
  ///
  /// - Throws: `unknownFeed`, `definitionConflict` for a circle or a child that is there already, `indexOutOfRange`,
  ///   `invalidParams` when `before` or `after` names no child.
  public func insertChild(_ feed: ProviderFeed, _ name: String, at place: ChildPlace) throws(FeedError) {
    let child = try self.feed(named: name)
    try checkChildren(feed.children + [child], of: feed, named: feed.name)
    let index = try index(of: place, in: feed)
    let shows = feed is ComposedFeed || feed.children.isEmpty
    try checkGrowth(
      of: feed, named: feed.name, children: feed.children + [child], showing: Array(feed.shown) + (shows ? [child] : [])
    )
    restructure(feed) {
      var children = feed.children
      children.insert(child, at: index)
      feed.adopt(children)
      guard let segmented = feed as? SegmentedFeed else { return }
      if children.count == 1 {
        segmented.current = 0
      } else if index <= segmented.current {
        segmented.current += 1
      }
    }
  }

  /// Takes a child from under a provider (method `removeChild`). Of a segmented one, the successor of the active child
  /// becomes active in its place, or the last.
  public func removeChild(_ feed: ProviderFeed, at index: Int) throws(FeedError) {
    guard feed.children.indices.contains(index) else {
      throw .indexOutOfRange(feed: feed.name, index: index, count: feed.children.count, what: "child")
    }
    restructure(feed) {
      var children = feed.children
      children.remove(at: index)
      feed.adopt(children)
      guard let segmented = feed as? SegmentedFeed else { return }
      if index < segmented.current {
        segmented.current -= 1
      } else if index == segmented.current {
        segmented.current = min(index, children.count - 1)
      }
    }
  }

  /// Shows another child of a segmented feed, or none for -1 (method `activate`); an index past the ends is clamped.
  /// - Throws: `limitExceeded` when a feed that shows this one has no room for the child's sections.
  public func activate(_ feed: SegmentedFeed, index: Int) throws(FeedError) {
    let target = min(max(index, -1), feed.children.count - 1)
    if target == feed.current { return startOperation() }
    let sections = SegmentedFeed.shown(feed.children, target).reduce(0) { $0 + $1.sectionCount }
    try checkParents(of: feed, sections: sections - feed.sectionCount)
    restructure(feed) {
      feed.current = target
      feed.structureDidChange()
    }
  }

  /// The index of the child of that name.
  public func child(named name: String, of feed: ProviderFeed) throws(FeedError) -> Int {
    if let index = feed.children.firstIndex(where: { $0.name == name }) { return index }
    _ = try self.feed(named: name)
    throw .invalidParams(member: "child", reason: "is \"\(name)\", which is no child of \"\(feed.name)\"")
  }

  /// Changes children or the active one, leaves what that shows in `result`, and notes how to undo it.
  func restructure(_ feed: ProviderFeed, _ body: () -> Void) {
    startOperation()
    let before = feed.shown.map { ($0, $0.sectionCount) }
    let children = feed.children
    let current = (feed as? SegmentedFeed)?.current ?? -1
    body()
    result = feed.restructured(from: before)
    log.append(undo: {
      (feed as? SegmentedFeed)?.current = current
      feed.adopt(children)
    })
    finishOperation(on: feed)
    touch(feed)
  }

  private func index(of place: ChildPlace, in feed: ProviderFeed) throws(FeedError) -> Int {
    switch place {
    case .end: return feed.children.count
    case .before(let name): return try child(named: name, of: feed)
    case .after(let name): return try child(named: name, of: feed) + 1
    case .index(let index):
      guard (0...feed.children.count).contains(index) else {
        throw .indexOutOfRange(feed: feed.name, index: index, count: feed.children.count, what: "place for a child")
      }
      return index
    }
  }

  /// Refuses children that stand twice or would close a circle. `feed` is nil while it is being defined.
  func checkChildren(_ children: [Feed], of feed: Feed?, named name: String) throws(FeedError) {
    var seen: Set<ObjectIdentifier> = []
    for child in children {
      guard seen.insert(ObjectIdentifier(child)).inserted else {
        throw .definitionConflict(feed: name, reason: "\"\(child.name)\" may be its child only once")
      }
      if let feed, feed.isShown(by: child) {
        throw .definitionConflict(
          feed: name, reason: "\"\(child.name)\" shows \"\(name)\" already, so the two would form a circle")
      }
    }
  }

  /// The feeds that children's names stand for.
  func resolve(_ names: [String]) throws(FeedError) -> [Feed] {
    var feeds: [Feed] = []
    for name in names { feeds.append(try feed(named: name)) }
    return feeds
  }
}
