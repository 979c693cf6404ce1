/// The copies of rows that a long commit changes, so that others can read the rows before.
///
/// While the commit works, a feed has the copy; while others work, it has the rows before. If the commit takes effect,
/// the copy stays. Invariant: a feed is forked once, before the commit has changed any of its rows.
struct Forks {
  private struct Fork {
    let feed: FeedNumber
    /// Exchanges the rows of the feed and the other ones.
    let exchange: () -> Void
  }

  /// Fewer steps than these are made in place.
  private static let fewSteps = 2048
  /// A copy is made if there are so many rows for each step, or fewer.
  private static let rowsPerStep = 16

  /// The steps that the commit is expected to make; 0 if it does not stop.
  private(set) var steps = 0
  private var forks: [Fork] = []
  /// The feeds whose rows the commit changes in place.
  private(set) var inPlace: [FeedNumber] = []
  /// Whether an operation had changed rows, while others work.
  private var wasChanging = false

  var isEmpty: Bool { forks.isEmpty }
  /// Whether the commit changes copies only.
  var areAll: Bool { inPlace.isEmpty }

  /// Begins work with so many steps, or ends it.
  mutating func begin(steps: Int) {
    assert(forks.isEmpty, "a commit has not ended")
    self.steps = steps
    inPlace.removeAll()
  }

  /// Whether a feed that will be changed shall be forked. If not, it is changed in place.
  mutating func shallAdd(_ feed: FeedNumber, rows: Int, steps: Int?) -> Bool {
    if isKnown(feed) { return false }
    if max(steps ?? 0, self.steps) >= max(Self.fewSteps, rows / Self.rowsPerStep) { return true }
    inPlace.append(feed)
    return false
  }

  /// Gives the feed its copy.
  mutating func add(_ feed: FeedNumber, _ exchange: @escaping () -> Void) {
    forks.append(Fork(feed: feed, exchange: exchange))
    exchange()
  }

  /// Records that rows of a feed will be changed.
  mutating func willChange(_ feed: FeedNumber) {
    if !isKnown(feed) { inPlace.append(feed) }
  }

  /// Whether the commit changes the feed, in a copy or in place.
  private func isKnown(_ feed: FeedNumber) -> Bool {
    inPlace.contains(feed) || forks.contains { $0.feed == feed }
  }

  /// Gives the feeds the rows before the commit.
  mutating func hide(_ graph: FeedGraph) {
    exchange(graph)
    wasChanging = graph.counts.show(isChanging: false)
  }

  /// Gives the feeds their copies again.
  mutating func show(_ graph: FeedGraph) {
    exchange(graph)
    _ = graph.counts.show(isChanging: wasChanging)
  }

  private func exchange(_ graph: FeedGraph) {
    for fork in forks {
      fork.exchange()
      graph.sectionsDidChange(of: graph.table[fork.feed])
    }
  }

  /// Lets the feeds keep their copies: the commit takes effect.
  mutating func keep() {
    forks.removeAll()
    inPlace.removeAll()
  }

  /// Gives the feeds the rows before the commit for good.
  mutating func discard() {
    for fork in forks { fork.exchange() }
    forks.removeAll()
    inPlace.removeAll()
  }
}
