/// What others can read while a commit is suspended between two of its steps.
///
/// A long commit changes copies of large lists (``Forks``), so that others read the rows before, and hides the rest.
public final class LongCommit {
  enum Stage {
    /// Operations change rows, or their changes are composed.
    case open
    /// The commit has its revision, and some feeds do not have their new state yet.
    case publishing
    /// All feeds have their new state.
    case releasing
  }

  private let graph: FeedGraph
  private let publisher: Publisher
  private let log: UndoLog
  private var forks = Forks()
  private var stage = Stage.open

  init(graph: FeedGraph, publisher: Publisher, log: UndoLog) {
    (self.graph, self.publisher, self.log) = (graph, publisher, log)
  }

  /// Whether the open commit may stop between two of its steps, and others read meanwhile.
  @inline(__always)
  public var isAnnounced: Bool { forks.steps > 0 }

  /// Announces that the next commit may stop between two of its steps, or that it has ended.
  /// - Parameter steps: the number of elements that it changes, if it changes no more than it names; 0 at the end.
  public func announce(steps: Int) { forks.begin(steps: steps) }

  /// Whether others can read every feed now, between `suspend` and `resume`.
  public var isReadable: Bool {
    switch stage {
    case .open: !log.hasStructures && (log.isEmpty || forks.areAll)
    case .publishing: false
    case .releasing: true
    }
  }

  /// Whether others can read a feed now although not every feed: it shows no rows that are being changed.
  public func isReadable(_ feed: Feed) -> Bool {
    if log.hasStructures { return false }
    if stage == .open && forks.areAll { return true }
    return graph.isEveryShown(by: feed) { shown in
      let changed = graph.table.collection(of: shown) ?? shown
      if stage == .open { return !forks.isChangedInPlace(changed) }
      return !forks.isKnown(changed.number) && !publisher.hasSlot(changed.number) && !publisher.hasSlot(shown.number)
    }
  }

  /// Lets others read the state before the commit, as far as that is possible; see ``isReadable``.
  public func suspend() { if hidesChanges { forks.hide(graph) } }
  public func resume() { if hidesChanges { forks.show(graph) } }
  /// Also without copies: otherwise a view that shows no changed rows would evaluate all of its rows again to be read.
  private var hidesChanges: Bool { stage == .open && !log.hasStructures }

  /// Gives a feed a copy of its rows, which the commit changes, unless the copy costs more than the operation.
  ///
  /// After a feed was defined or redefined no copy is made: nothing can be read until the commit ends.
  /// - Parameter steps: the number of elements that the operation changes; nil if the commit knows more.
  func forkIfWorthwhile<Rows: RowStore>(
    _ feed: FeedNumber, _ rows: Rows, steps: Int?, copy: () -> Rows, exchange: @escaping (inout Rows) -> Void
  ) {
    guard !log.hasStructures, forks.shallAdd(feed, rows: rows.elements.count, steps: steps) else { return }
    // Otherwise a client that changes many elements again and again makes copies faster than turns free them.
    rows.elements.discarded?.freeAll(log.pace)
    var other = copy()
    forks.add(feed) {
      let next = other
      exchange(&other)
      next.elements.moveAccount(from: other.elements)
    }
  }

  @inline(__always)
  func willChange(_ feed: FeedNumber) { if isAnnounced { forks.willChange(feed) } }

  /// Records that the feeds get their new state now.
  @inline(__always)
  func beginPublication() { stage = .publishing }

  /// Records that all feeds have their new state. They keep the copies.
  @inline(__always)
  func endPublication() {
    stage = .releasing
    if !forks.isEmpty { forks.keep() }
  }

  /// Gives the feeds the rows before the commit for good.
  func rollBack() { forks.discard() }

  @inline(__always)
  func close() { stage = .open }
}

/// The copies of rows that a long commit changes, so that others can read the rows before.
///
/// While the commit works, a feed has the copy; while others work, it has the rows before. If the commit takes effect,
/// the copy stays. Invariant: a feed is forked once, before the commit has changed any of its rows.
///
/// Each stop and each continuation exchanges all copies, so there are at most ``mostForks``; further feeds are changed in place.
struct Forks {
  /// Fewer steps than these are made in place.
  private static let fewSteps = 2048
  /// A copy is made if there are so many rows for each step, or fewer: copying them takes about twice as long as the step.
  private static let rowsPerStep = 256
  /// The copies of a commit. Exchanging one takes about a microsecond.
  private static let mostForks = 256

  /// The steps that the commit is expected to make; 0 if it does not stop.
  private(set) var steps = 0
  /// The feeds, each with what exchanges its rows and the other ones.
  private var forks: [(feed: FeedNumber, exchange: () -> Void)] = []
  /// The feeds whose rows the commit changes in place.
  private var inPlace: Set<FeedNumber> = []
  /// The feeds of `forks`.
  private var forked: Set<FeedNumber> = []
  private var last: FeedNumber?

  var isEmpty: Bool { forks.isEmpty }
  var areAll: Bool { inPlace.isEmpty }

  /// Begins work with so many steps, or ends it.
  mutating func begin(steps: Int) {
    assert(forks.isEmpty, "a commit has not ended")
    self.steps = steps
    keep()
  }

  func isChangedInPlace(_ feed: Feed) -> Bool { inPlace.contains(feed.number) }

  /// Whether a feed that will be changed shall be forked. If not, it is changed in place.
  mutating func shallAdd(_ feed: FeedNumber, rows: Int, steps: Int?) -> Bool {
    if isKnown(feed) { return false }
    if forks.count < Self.mostForks, max(steps ?? 0, self.steps) >= max(Self.fewSteps, rows / Self.rowsPerStep) {
      return true
    }
    inPlace.insert(feed)
    return false
  }

  mutating func add(_ feed: FeedNumber, _ exchange: @escaping () -> Void) {
    forks.append((feed, exchange))
    forked.insert(feed)
    exchange()
  }

  mutating func willChange(_ feed: FeedNumber) {
    if feed == last { return }
    last = feed
    if !isKnown(feed) { inPlace.insert(feed) }
  }

  /// Whether the commit changes the feed, in a copy or in place.
  func isKnown(_ feed: FeedNumber) -> Bool { forked.contains(feed) || inPlace.contains(feed) }

  /// Gives the feeds the rows before the commit.
  func hide(_ graph: FeedGraph) {
    exchange(graph)
    graph.counts.hide()
  }

  /// Gives the feeds their copies again.
  func show(_ graph: FeedGraph) {
    exchange(graph)
    graph.counts.show()
  }

  private func exchange(_ graph: FeedGraph) {
    for fork in forks {
      fork.exchange()
      graph.sectionsDidChange(of: graph.table[fork.feed])
    }
  }

  /// Gives the feeds the rows before the commit for good.
  mutating func discard() {
    for fork in forks { fork.exchange() }
    keep()
  }

  /// Lets the feeds keep their copies: the commit takes effect.
  mutating func keep() {
    forks.removeAll()
    forked.removeAll()
    inPlace.removeAll()
    last = nil
  }
}
