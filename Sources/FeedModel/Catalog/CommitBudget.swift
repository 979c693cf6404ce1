import FeedChange
import FeedJSON
import FeedQuery

/// The work that the open commit may still do for one request: the rows that it changes or lists, and the steps of its
/// filters. What exceeds it is refused with `limitExceeded`.
///
/// Invariant: no more rows are left than the request may change.
struct CommitBudget {
  /// Changes of fewer rows are not multiplied by the feeds that derive their own changes from them.
  private static let fewRows = 16

  private let graph: FeedGraph
  private let log: UndoLog
  private var maxRows = Int.max
  private var rowsLeft = Int.max
  /// Whether an operation of the commit has changed rows that views may show.
  private var hasRowsForViews = false
  /// Whether the rows of the current operation were charged for the feeds above.
  private var hasChargedFeedsAbove = false
  /// Whether an operation of the commit has changed the children of a feed.
  private var hasChangedChildren = false
  private var hasReadElements = false
  /// Whether an operation has changed rows that count; see ``usePreviews(of:)``.
  private var hasChangedCounts = false
  private var maxSteps = Int.max
  /// The rows that operations before the current one may have added to the indexes of views.
  var viewGrowth = ViewGrowth()

  init(graph: FeedGraph, log: UndoLog) { (self.graph, self.log) = (graph, log) }

  mutating func begin(maxSteps: Int, maxRows: Int) {
    log.allow(steps: maxSteps)
    (self.maxSteps, self.maxRows, rowsLeft, hasRowsForViews) = (maxSteps, maxRows, maxRows, false)
    (hasChargedFeedsAbove, hasChangedChildren, hasReadElements, hasChangedCounts) = (false, false, false, false)
    viewGrowth.begin()
  }

  /// Whether the charges of rules 3 apply.
  var countsRepeatedWork: Bool { log.rules >= 3 }
  /// Whether those of rules 4 apply.
  var countsReading: Bool { log.rules >= 4 }

  /// See ``Limits/countsAllWork``.
  private var countsAllWork: Bool { maxRows < .max }

  // MARK: Rows

  /// Charges rows before an operation changes them.
  ///
  /// Many rows are charged once more for each feed above that derives a change of its own from them, or has a copy of the change.
  mutating func use(rows count: Int, of feed: FeedNumber) throws(FeedError) {
    var times = 1
    if count > Self.fewRows {
      hasChargedFeedsAbove = true
      times += timesAbove(feed)
    }
    try use(rows: count, times: times)
  }

  /// How often feeds above derive or copy a change of a feed.
  private func timesAbove(_ feed: FeedNumber) -> Int {
    let feed = graph.table[feed]
    return graph.derivationCount(of: feed) + (countsRepeatedWork ? graph.copyCount(of: feed) : 0)
  }

  private mutating func use(rows count: Int, times: Int) throws(FeedError) {
    let (product, overflows) = count.multipliedReportingOverflow(by: times)
    try use(rows: overflows ? .max : product)
  }

  /// Charges rows that an operation lists only for the feeds above that derive or copy its change, unless they were charged already:
  /// those of a redefinition, and those of each operation after the first, because many operations may change few rows each.
  mutating func useAbove(rows count: Int, of feed: FeedNumber) throws(FeedError) {
    if hasChargedFeedsAbove || !countsRepeatedWork { return }
    hasChargedFeedsAbove = true
    let times = timesAbove(feed)
    if times > 0 { try use(rows: count, times: times) }
  }

  @inline(__always)
  mutating func operationDidEnd() { hasChargedFeedsAbove = false }

  mutating func use(rows count: Int) throws(FeedError) {
    guard count <= rowsLeft else {
      let (sum, overflows) = (maxRows - rowsLeft).addingReportingOverflow(count)
      throw Limits.exceeded(
        \.maxRequestRows, of: maxRows,
        "the request counts \(counted(overflows ? .max : sum, "row")): those that it changes, lists or reads, and children of "
          + "feeds, again for each feed that derives its own change; do less at a time")
    }
    rowsLeft -= count
  }

  /// Charges an operation that redefines a feed or changes its children, which looks at all of them and at all feeds above. The first one
  /// of the request is free, so that no single change is refused for the number of feeds that are there already.
  mutating func use(children count: Int, of feed: Feed) throws(FeedError) {
    log.pace.spend(count / 16)
    defer { hasChangedChildren = true }
    guard hasChangedChildren, countsRepeatedWork else { return }
    try use(rows: count)
    try useFeeds(above: feed)
  }

  /// Charges an operation that looks at all feeds above.
  mutating func useFeeds(above feed: Feed) throws(FeedError) {
    if countsReading && graph.hasParents(feed.number) { try use(rows: graph.listings(of: feed) - 1) }
  }

  /// Charges an operation that reads or copies all elements of a feed. The first one of the request is free, so that no single
  /// change is refused for the elements that are there already.
  /// - Parameter bytes: those of the elements. To add them up may take long.
  mutating func use(allElements bytes: @autoclosure () -> Int) throws(FeedError) {
    let isFirst = !hasReadElements
    hasReadElements = true
    if !isFirst && countsAllWork { try useSteps(readingBytes: bytes()) }
  }

  /// Charges the reading of present elements, a step for each 16 bytes: a short request can name long ones many times.
  func useSteps(readingBytes bytes: Int) throws(FeedError) {
    guard countsAllWork, countsReading else { return }
    log.didUse(steps: bytes / 16)
    try checkSteps(
      "the request reads too many elements again, a step for each 16 bytes; name fewer long elements, redefine fewer feeds at a "
        + "time")
  }

  /// Records that an operation changed rows, and would in replay.
  @inline(__always)
  mutating func countsDidChange() { hasChangedCounts = true }

  /// Charges the rows that views below a feed evaluate before an operation counts its rows. An operation leaves their indexes behind,
  /// so until the commit ends each view with a filter or a sort reads all rows of its source.
  mutating func usePreviews(of feed: Feed) throws(FeedError) {
    guard hasChangedCounts, graph.indexedViews > 0, countsRepeatedWork else { return }
    var seen: Set<FeedNumber> = []
    try usePreviews(of: feed, &seen)
  }

  private mutating func usePreviews(of feed: Feed, _ seen: inout Set<FeedNumber>) throws(FeedError) {
    guard let derived = feed.derived, seen.insert(feed.number).inserted else { return }
    log.pace.spend()
    for (place, source) in derived.sources where derived.shows(place) { try usePreviews(of: source, &seen) }
    // Counting the rows of the source evaluates views below it, which were charged.
    if let view = derived as? ViewKind, view.hasIndex {
      let (graph, pace) = (graph, log.pace)
      try use(rows: graph.countedRows(of: view.source))
      try use(allElements: graph.countedBytes(of: view.source, pace))
    }
  }

  /// The operations of one request that may list or read rows of managed feeds, if it counts nothing else.
  private static let managedOperations = 1000

  /// Charges an operation that lists or reads some feeds again, if these have rows of managed feeds: however many these are, they count
  /// as a part of what the request may change, because its operations may list them again and again.
  mutating func useManagedRows(of feeds: [Feed]) throws(FeedError) {
    if feeds.allSatisfy(graph.countsAll(of:)) { return }
    try use(rows: maxRows / Self.managedOperations)
  }

  // MARK: Steps

  /// Refuses an operation whose filters would certainly use more steps than the request has left.
  func checkRoom(forSteps steps: Int) throws(FeedError) {
    if !countsAllWork { return }
    try checkSteps(
      "the filters would take at least \(counted(steps, "step")) over all elements; use fewer bins or elements",
      least: steps)
  }

  private func checkSteps(_ reason: @autoclosure () -> String, least count: Int = 0) throws(FeedError) {
    if count > log.stepsLeft { throw Limits.exceeded(\.maxRequestSteps, of: maxSteps, reason()) }
  }

  /// Charges the merging of a patch into an element of so many bytes.
  func useSteps(mergingBytes bytes: Int) throws(FeedError) {
    log.pace.spend(bytes / 2048)
    guard countsAllWork else { return }
    log.didUse(steps: bytes / 16)
    try checkSteps(
      "the patches take too many steps, one for each 16 bytes of an element and patch; give fewer patches for long elements"
    )
  }

  /// Records that an operation changed rows that views may show. Returns whether it is the first of the commit.
  @inline(__always)
  mutating func didChangeRows() -> Bool {
    defer { hasRowsForViews = true }
    return !hasRowsForViews
  }

  /// Whether filters of views over so many rows are free: they are short, or these show the first element.
  @inline(__always)
  func isFree(of rows: Int, isFirst: Bool) -> Bool { !countsAllWork || graph.slowViews == 0 || isFirst && rows <= 1 }

  /// Charges the filters of views over the rows that an operation added or updated.
  ///
  /// They run when the commit is published, which cannot fail. So they run here too, except for the first element.
  func useStepsOfViews(of feed: FeedNumber, after change: borrowing Change, isFirst: Bool) throws(FeedError) {
    let feed = graph.table[feed]
    var first: ElementText?
    for paths in [change.added, change.updated] {
      for path in paths {
        let element = feed.element(at: path)
        if isFirst && (first == nil || first == element) {
          first = element
          continue
        }
        useSteps(of: feed.number, element)
        if feed.kind.bins.indices.contains(Int(path.section)) {
          useSteps(of: feed.kind.bins[Int(path.section)].number, element)
        }
        try checkRoom(forSteps: 0)
      }
    }
  }

  /// Charges the filters of views above a feed over the rows of others that it comes to show, where replay may make another change:
  /// ``useStepsOfViews(of:after:isFirst:)`` then does not.
  func useStepsOfViews(above feed: FeedNumber, showing others: [Feed]) throws(FeedError) {
    guard countsAllWork, graph.slowViews > 0 else { return }
    for other in others.flatMap(graph.countedFeeds(of:)) {
      other.forEachRow { if log.stepsLeft >= 0 { useSteps(of: feed, $0.element) } }
      try checkRoom(forSteps: 0)
    }
  }

  private func useSteps(of feed: FeedNumber, _ element: ElementText) {
    for (judge, paths) in graph.derivations(above: feed).judges {
      let steps = judge.steps(over: element, log.pace)
      log.didUse(steps: steps &* paths)
      log.pace.spend(1 &+ steps / 64)
    }
  }
}

/// Judges present elements by the filter of a request, its parameter `where`, within the steps that the request has left.
///
///     var judge = ElementJudge(filter, limits: limits, in: commit)
///     for element in elements where judge.accepts(element) { … }
///     try judge.checkSteps()
///
/// Steps are counted instead of time, so that replay makes the same decisions.
public struct ElementJudge: ~Copyable {
  private let filter: Filter
  private let limits: Limits
  private let log: UndoLog
  private var scanner = JSONScanner(maxDepth: Limits.largestDepth)
  /// Whether an element took too many steps.
  private var ranOut = false
  /// Whether the request had fewer steps left than an element may take.
  private var isShort = false

  public init(_ filter: Filter, limits: Limits, in commit: Commit) {
    (self.filter, self.limits) = (filter, limits)
    log = commit.log
  }

  /// Whether the filter accepts a stored element. After an element took too many steps, no other is accepted.
  public mutating func accepts(_ text: UnsafeRawBufferPointer) -> Bool {
    guard !ranOut, let element = try? scanner.scan(text, log.pace) else { return false }
    let limit = limits.maxQuerySteps
    let allowed = limits.countsAllWork ? min(limit, log.stepsLeft) : limit
    var steps = allowed
    let isAccepted = filter.accepts(element, steps: &steps, pace: log.pace.evaluations)
    ranOut = steps < 0
    isShort = allowed < limit
    if limits.countsAllWork { log.didUse(steps: allowed &- steps &+ 1) }
    log.pace.spend(1 &+ (allowed &- steps) / 64)
    return isAccepted
  }

  /// Throws `limitExceeded` if an element took too many steps.
  public func checkSteps() throws(FeedError) {
    guard ranOut else { return }
    throw limits.tooManySteps(
      ofRequest: isShort,
      inRequest: "\"where\" takes too many steps over all elements; write a simpler filter",
      inElement: "\"where\" takes too many steps over an element; write a simpler filter")
  }
}

extension Limits {
  /// The error for filters that took too many steps: all that the request had left, or all for one element.
  func tooManySteps(ofRequest isOfRequest: Bool, inRequest: String, inElement: String) -> FeedError {
    isOfRequest ? exceeded(\.maxRequestSteps, inRequest) : exceeded(\.maxQuerySteps, inElement)
  }
}
