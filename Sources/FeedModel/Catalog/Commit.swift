import FeedChange

/// The open commit: one or several operations that take effect together, under one revision.
///
/// A catalog has one object, reused for every commit.
///
///     commit.begin(at: now)
///     try collection.update(element, in: commit)      // operations; each leaves its change in `result` or `row`
///     commit.finish(to: observer)                     // or rollBack()
///
/// Invariant: between commits the undo log, the changes and the hints are empty, and no operation is pending.
public final class Commit {
  /// The revision of the last commit.
  public private(set) var revision: UInt64
  /// The log that rolls back the steps of this commit.
  let log = UndoLog()
  let graph: FeedGraph
  let publisher: Publisher
  /// What others can read while this commit is suspended.
  public let long: LongCommit
  /// The work that operations may still do for the request.
  var budget: CommitBudget
  private let discarded: DiscardedElements

  /// The time of the current step, a nanosecond after the last one: no two elements of a feed change at one time.
  private(set) var moment = Instant(nanoseconds: 0)
  /// The time before the first step of the commit.
  private var start = Instant(nanoseconds: 0)
  private var isOpen = false
  /// The most rows that the first operation may list without being rolled back after it has succeeded; 0 for none.
  private var certainRows = 0
  private var operation = Operation()
  /// The feeds that got other children since their rows in `$feeds` were written, each with the time of its last change.
  private var unlisted: [String: Instant] = [:]
  /// Whether feeds of an image are defined. The rows of `$feeds` then change without a commit: feeds that show them may be
  /// restored already, with later revisions.
  var isRestoring = false

  init(graph: FeedGraph, revision: UInt64, _ discarded: DiscardedElements) {
    (self.graph, self.discarded, self.revision) = (graph, discarded, revision)
    publisher = Publisher(graph: graph, log: log)
    long = LongCommit(graph: graph, publisher: publisher, log: log)
    budget = CommitBudget(graph: graph, log: log)
  }

  // MARK: Begin and end

  /// Lets long operations stop between two steps.
  public var pace: Pace { log.pace }

  /// Starts a commit.
  /// - Parameter certain: if the commit has one operation, the rows that it may list without being rolled back afterwards.
  public func begin(at moment: Instant, maxSteps: Int = .max, maxRows: Int = .max, certain: Int = 0) {
    assert(!isOpen, "the commit before was neither finished nor rolled back")
    isOpen = true
    certainRows = certain
    budget.begin(maxSteps: maxSteps, maxRows: maxRows)
    self.moment = max(moment, self.moment)
    start = self.moment
    if let sections = operation.takeManySections() { discarded.add(sections) }
    operation.begin()
  }

  /// Rolls back everything since `begin`.
  public func rollBack() {
    assert(log.isRecording || operation.isEmpty, "a step that cannot be undone came before an error")
    unlisted.removeAll()
    graph.counts.endCommit()
    log.undo(to: .start)
    keyedSectionsDidChange()
    long.rollBack()
    graph.counts.advance()
    log.finish()
    operation.abandon()
    close()
  }

  /// Commits everything since `begin` under the next revision and notifies `observer`, unless nothing changed.
  ///
  /// Returns whether there was a commit. Afterwards ``result`` is still the change of the last operation.
  @discardableResult
  public func finish(to observer: (any CommitObserver)? = nil) -> Bool {
    if !unlisted.isEmpty { relistUnlisted() }
    graph.counts.endCommit()
    let isStructural = isStructural
    if operation.pending >= 0, publisher.isEmpty, !isStructural {
      finishSingle(to: observer)
      return true
    }
    operation.expand()
    let lender = publisher.compose(&operation)
    let isChanged = isStructural || publisher.hasChanges
    if isChanged {
      if log.pace.isActive { publisher.prepareHistories() }
      long.beginPublication()
      revision &+= 1
      publisher.publish(as: revision, from: start, at: moment, to: observer)
    }
    release(to: observer)
    if let lender { publisher.exchange(&operation, lender) }
    close()
    return isChanged
  }

  /// Finishes a commit of one operation on one feed without structural steps, the common case. Nothing is allocated.
  private func finishSingle(to observer: (any CommitObserver)?) {
    if log.pace.isActive { changedFeed?.prepareToRecord(entries: operation.size, log.pace) }
    long.beginPublication()
    revision &+= 1
    publisher.publishOnly(&operation, as: revision, at: moment, to: observer)
    release(to: observer)
    close()
  }

  /// Frees what the commit kept for its rollback, after the observer has told others. They can read the new state meanwhile.
  @inline(__always)
  private func release(to observer: (any CommitObserver)?) {
    long.endPublication()
    if log.pace.isActive { observer?.didPublish() }
    log.finish()
  }

  @inline(__always)
  private func close() {
    publisher.close()
    graph.didClose()
    operation.didPublish()
    // While this stops, others read the new state, as while the log is cleared.
    graph.table.recycle(log.pace)
    long.close()
    isOpen = false
    #if CHECK_INVARIANTS
      if revision % 16 == 0 { checkInvariants() }
    #endif
  }

  /// Raises the revision to `revision`. Replay uses it for commits that it cannot repeat.
  func skip(to revision: UInt64) {
    assert(!isOpen, "a commit is under way")
    self.revision = max(self.revision, revision)
  }

  func restore(revision: UInt64, at moment: Instant) {
    assert(!isOpen, "a commit is under way")
    (self.revision, self.moment) = (revision, moment)
    graph.counts.advance()
  }

  /// The rules by which requests are executed (``ExecutionRules``). Replay sets those of the log.
  public var rules: Int {
    get { log.rules }
    set { (log.rules, graph.rules) = (newValue, newValue) }
  }

  // MARK: Operations

  /// Charges what feeds above do with the rows that the last operation changed: the filters of views, unless they take few steps, and
  /// after the first operation also the rows of the changes that they derive. If replay would make another change, the operation charged
  /// what it can know of that.
  /// - Throws: `limitExceeded`.
  public func useStepsOfViews() throws(FeedError) {
    defer { budget.operationDidEnd() }
    guard operation.pending >= 0, isRepeatable else { return }
    let isFirst = budget.didChangeRows()
    if !isFirst {
      try budget.useAbove(rows: operation.size, of: operation.pending)
      // Feeds above show sections by value that came or went.
      if operation.dividedBy != nil, !operation.result.hasSameSections {
        try budget.useFeeds(above: graph.table[operation.pending])
      }
    }
    if budget.isFree(of: operation.size, isFirst: isFirst) { return }
    operation.expand()
    try budget.useStepsOfViews(of: operation.pending, after: operation.result, isFirst: isFirst)
  }

  /// Charges the merging of a patch into an element of so many bytes: a step for each 16 bytes.
  /// - Throws: `limitExceeded`.
  public func useSteps(mergingBytes bytes: Int) throws(FeedError) { try budget.useSteps(mergingBytes: bytes) }

  /// Charges the reading of an element that the request names.
  /// - Throws: `limitExceeded`.
  public func useSteps(readingBytes bytes: Int) throws(FeedError) { try budget.useSteps(readingBytes: bytes) }

  /// Advances the time for the next step and returns it.
  @inline(__always)
  func tick() -> Instant {
    moment = moment.adding(nanoseconds: 1)
    return moment
  }

  /// The change of the last operation, in the coordinates before it. Valid until the next operation.
  public var result: Change {
    operation.expand()
    return operation.result
  }

  /// The change of the last operation if it is that of one row.
  public var row: ChangeOfOne? { operation.row }
  /// Whether the last operation makes the same change in replay: it redefined no feed with rows of managed feeds. Before the commit ends.
  @inline(__always)
  public var isRepeatable: Bool { operation.redefined < 0 || graph.isRepeatable(operation.redefined) }
  var changedFeed: Feed? { operation.pending < 0 ? nil : graph.table[operation.pending] }

  /// How many rows more the feed of the last operation shows than before it; nil if only ``result`` tells it.
  var rowGrowth: RowGrowth? {
    // Rows of sections by value: the change in one section lists all of them.
    if operation.dividedBy != nil { return RowGrowth(feed: operation.flat.added.count - operation.flat.deleted.count) }
    return operation.growth
  }

  /// The number of rows that ``result`` adds or updates.
  var addedOrUpdated: Int {
    operation.expand()
    return operation.result.added.count &+ operation.result.updated.count
  }

  /// The number of rows and sections that ``result`` lists, and the bytes of the names of the sections that it adds.
  public var resultSize: (all: Int, nameBytes: Int) {
    var bytes = 0
    for index in operation.result.sectionsAdded.indices { bytes &+= operation.result.sectionsAdded[index].nameLength }
    return (operation.size, bytes)
  }

  /// The bytes that the open commit keeps to undo its steps: the list of its steps, and the versions of elements that it has
  /// made and replaced. Amortized O(1) for each step since the last call.
  public var undoMemory: Int { isOpen ? log.memory(since: start) : 0 }

  /// Whether an operation redefined a feed or gave it other children. Publishing it may add to ``result``.
  public var isStructural: Bool { log.hasStructures }

  /// Calls `body` with ``result`` without copying it, and with a function that it calls after about a thousand rows.
  public func withResult(_ body: (borrowing Change, _ step: () -> Void) -> Void) {
    operation.expand()
    lendValue(of: &operation.result) { change in body(change) { log.pace.didCompose() } }
  }

  func startOperation() {
    log.pace.spend(2)
    if operation.isNew { return }
    if operation.pending >= 0 {
      operation.expand()
      if graph.indexedViews > 0 { countGrowthForViews() }
      publisher.add(operation)
    }
    operation.begin()
  }

  /// Adds one step to the current operation, in the coordinates after the previous step.
  @inline(__always)
  func addStep(_ step: inout Change) { operation.add(&step, log.pace) }

  @inline(__always)
  func addStep(of store: RowStore) {
    guard let row = store.row else { return addStep(&store.step) }
    if operation.stepCount == 0 { return operation.add(row, store.shownElement) }
    store.row = nil
    store.step.append(row)
    addStep(&store.step)
  }

  /// Stops recording how to undo the steps of the open commit, if nothing can make it fail once the rules of its operation have
  /// accepted an element. Then each step takes effect at once, and frees what it replaces. Later errors must be excluded, as those
  /// of ``useStepsOfViews()`` (no slow views), `checkRowsOfViews` (none with an index), a too long answer (few rows) and
  /// `checkGrowth` (the caller has no sections by value).
  /// - Parameter rows: the most rows that the operation lists.
  @inline(__always)
  func omitUndoIfPossible(rows: Int) {
    if rows <= certainRows && graph.slowViews == 0 && graph.indexedViews == 0 && !log.pace.isActive {
      log.stopRecording()
    }
  }

  /// Runs an operation of any number of steps on the rows of `feed`. If a step throws, the operation is rolled back.
  /// - Parameter rows: the rows to charge to the request first; see ``CommitBudget/use(rows:of:)``.
  @inline(__always)
  func operate(
    on feed: FeedNumber, _ store: RowStore, rows: Int = 0, _ steps: () throws(FeedError) -> Void
  ) throws(FeedError) {
    startOperation()
    long.willChange(feed)
    let position = log.position
    do throws(FeedError) {
      if rows > 0 { try budget.use(rows: rows, of: feed) }
      try steps()
    } catch {
      throw abandon(error, to: position)
    }
    try checkGrowth(of: store, since: position)
    finishOperation(on: feed, store, since: position)
  }

  /// Rolls back the current operation if its steps since `position` have added too many sections by value.
  @inline(__always)
  func checkGrowth(of store: RowStore, since position: UndoLog.Position) throws(FeedError) {
    guard let keyed = store.keyed else { return }
    do throws(FeedError) {
      try keyed.checkGrowth(store.limits)
    } catch {
      throw abandon(error, to: position)
    }
  }

  /// Ends an operation that changed rows of `feed` by the steps since `position`.
  @inline(__always)
  func finishOperation(on feed: FeedNumber, _ store: RowStore, since position: UndoLog.Position) {
    if let composed = operation.composedSteps(log.pace) {
      operation.result = store.simplify(composed, log, since: position)
    }
    if let keyed = store.keyed { divide(by: keyed, store, since: position) }
    if store.isTimed { noteTimed(feed) }
    finishOperation(on: feed)
  }

  /// Notes that the next time at which a feed evicts elements may be another one.
  func noteTimed(_ feed: FeedNumber) { graph.timed.insert(feed) }

  /// Calls `body` with the feeds whose next eviction may have changed since the last call, unless a commit is open.
  func updateTimed(_ body: (FeedNumber) -> Void) {
    if isOpen || graph.timed.isEmpty { return }
    for feed in graph.timed { body(feed) }
    graph.timed.removeAll(keepingCapacity: true)
  }

  /// Replaces the result of the current operation, a change in one section, by that of the keyed sections.
  @inline(never)
  private func divide(by keyed: KeyedSections, _ store: RowStore, since position: UndoLog.Position) {
    let isStep = operation.stepCount <= 1
    operation.divide(by: keyed) { flat, change in
      store.divide(flat, by: keyed, since: .operation, log, position, isStep: isStep, into: &change)
    }
    tellParents(of: keyed)
  }

  /// Updates the feeds that show keyed sections, if sections were added or removed.
  private func tellParents(of keyed: KeyedSections) {
    guard keyed.endOperation() else { return }
    guard graph.hasParents(keyed.number) else { return graph.counts.advance() }
    graph.sectionsDidChange(of: graph.table[keyed.number])
    graph.structureDidChange()
  }

  /// Updates the feeds that show keyed sections after an undo.
  private func keyedSectionsDidChange() { for keyed in log.keyed { tellParents(of: keyed) } }

  /// Ends an operation with one change of `feed`.
  /// - Parameter growth: how the numbers of rows changed, if the change deletes sections and views count rows.
  func finishOperation(on feed: FeedNumber, result: Change, growth: RowGrowth? = nil) {
    operation.set(result, redefining: feed, growth)
    finishOperation(on: feed)
  }

  @inline(__always)
  private func finishOperation(on feed: FeedNumber) {
    if operation.isEmpty { return }
    operation.pending = feed
    graph.counts.didChange(onlyUpdates: operation.onlyUpdates)
    if isRepeatable { budget.countsDidChange() }
  }

  /// Rolls back the current operation because of `error`, and returns `error`.
  func abandon(_ error: FeedError, to position: UndoLog.Position) -> FeedError {
    undo(to: position)
    operation.abandon()
    return error
  }

  func undo(to position: UndoLog.Position) {
    log.undo(to: position)
    graph.counts.advance()
    keyedSectionsDidChange()
  }

  /// Logs a structural step that was made, with the closure that undoes it.
  /// - Parameter position: the position of its first step on rows; nil if there was none. These are undone before it.
  func logStructure(before position: UndoLog.Position? = nil, undo: @escaping () -> Void) {
    log.append(before: position ?? log.position) { [graph] in
      undo()
      // At once: the rows of steps before may be undone in a copy, while others read.
      graph.structureDidChange()
    }
    graph.structureDidChange()
  }

  /// Lets the commit update the row of a feed in `$feeds` when it ends. The row names all children, so a commit that changes them
  /// many times would write, and keep for its rollback, that many copies of the list.
  func relistAtEnd(_ feed: Feed) { unlisted[feed.name] = tick() }

  /// Updates the rows of the feeds that got other children.
  private func relistUnlisted() {
    for (name, _) in unlisted.sorted(by: { $0.value < $1.value }) {
      // An operation that was rolled back may have defined the feed.
      guard let feed = graph.table.byName[name] else { continue }
      do throws(FeedError) {
        try relist(feed)
      } catch {
        // As for the lists of the changes, which are made next.
        preconditionFailure("\(error)")
      }
      log.pace.spend(1 + feed.definitionBytes / 1024)
    }
    unlisted.removeAll()
  }

  /// Updates the row of a feed in `$feeds` after the feed was defined, redefined or undefined.
  func relist(_ feed: Feed) throws(FeedError) {
    let change = try graph.table.follow(feed, in: self)
    if change.isEmpty { return }
    if isRestoring { return graph.counts.listDidChange(onlyUpdates: change.onlyUpdates) }
    if graph.indexedViews > 0 {
      let added = change.added.count - change.deleted.count
      budget.viewGrowth.add(added: added, shown: change.added.count + change.updated.count, to: graph.table.list, graph)
    }
    publisher.add(change, of: graph.table.list.number)
    graph.counts.listDidChange(onlyUpdates: change.onlyUpdates)
    budget.countsDidChange()
  }

  /// Sets the animation hint of the last operation, a JSON text (Protocol/README.md, "Animation").
  public func setHint(_ text: [UInt8]) {
    operation.expand()
    publisher.setHint(text, of: operation)
  }

  // MARK: Invariants

  /// Checks the invariants that hold between commits. O(feeds).
  func checkInvariants() {
    precondition(!isOpen && operation.pending < 0 && log.isEmpty, "something is left of the commit")
    precondition(unlisted.isEmpty, "a feed is not listed")
    publisher.checkInvariants()
    log.checkInvariants()
    graph.checkInvariants()
    graph.table.checkInvariants()
  }
}
