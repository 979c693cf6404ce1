/// The mapping from a list of feeds to their sections, one after another (seed 002, "Mappings").
struct SectionMapping {
  private let feeds: [Feed]
  /// Where each feed's sections begin; one more entry for the end.
  private let starts: [Int]
  private let places: [ObjectIdentifier: Int]

  init(_ feeds: [Feed]) {
    self.feeds = feeds
    var starts = [0]
    starts.reserveCapacity(feeds.count + 1)
    for feed in feeds { starts.append((starts.last ?? 0) + feed.sectionCount) }
    self.starts = starts
    places = Dictionary(uniqueKeysWithValues: feeds.enumerated().map { (ObjectIdentifier($1), $0) })
  }

  /// Sections in all.
  var count: Int { starts.last ?? 0 }

  /// The feed whose section an index in `0..<count` is, and that section's index in the feed. O(log feeds).
  func place(of section: Int) -> (feed: Feed, section: Int) {
    var (low, high) = (0, feeds.count - 1)
    while low < high {
      let middle = (low + high + 1) / 2
      if starts[middle] <= section { low = middle } else { high = middle - 1 }
    }
    return (feeds[low], section - starts[low])
  }

  /// Where a feed's sections begin; nil when it is not among them. O(1).
  func offset(of feed: Feed) -> Int? {
    places[ObjectIdentifier(feed)].map { starts[$0] }
  }
}
