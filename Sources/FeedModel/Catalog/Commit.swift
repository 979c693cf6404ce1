import FeedChange

/// The open commit: one or several operations that take effect together, under one revision.
///
/// A catalog has one object, reused for every commit.
///
///     commit.begin(at: now)
///     try collection.update(element, in: commit)      // operations; each leaves its change in `result`
///     commit.finish(to: observer)                     // or rollBack()
///
/// Invariant: between commits the undo log, the change table and the hints are empty, and no operation is open.
public final class Commit {
  /// The revision of the last commit.
  public private(set) var revision: UInt64
  /// The log that rolls back the steps of this commit.
  let log = UndoLog()
  let graph: FeedGraph

  /// The time of the current step. It advances by a nanosecond with every step, so no two elements of a feed have the
  /// same time of change.
  private var now = Instant(nanoseconds: 0)
  private var isOpen = false
  private var rows = RowBudget()
  /// Whether an operation of the open commit has changed rows that views may show.
  private var hasRowsForViews = false
  private var operation = Operation()
  /// The feed whose change is in `operation.result` and not yet in the feed's slot; -1 for none.
  private var pending: FeedNumber = -1
  /// The feed that the last operation redefined or gave other children; -1 for none. Its rows may change even if the
  /// operation changed none.
  private var redefined: FeedNumber = -1
  /// The keyed sections of the feed `pending`, with the change of its rows as one section; nil for other feeds.
  private var divided: (sections: KeyedSections, flat: Change)?
  private var hints = Hints()
  private var changes = ChangeTable()
  /// The collections that this commit redefined. Their changes cannot be simplified by the undo log.
  private var rebinned: [FeedNumber] = []
  private var stage = Stage.open
  /// The feeds whose rows a long commit changes in a copy.
  private var forks = Forks()

  init(graph: FeedGraph, revision: UInt64) {
    self.graph = graph
    self.revision = revision
  }

  // MARK: Begin and end

  /// Lets long operations stop between two steps.
  public var pace: Pace { log.pace }

  /// Starts a commit.
  /// - Parameters:
  ///   - maxSteps: the maximum number of steps that filters may take in the commit.
  ///   - maxRows: the maximum number of rows that operations of the commit may change; see ``use(rows:of:)``.
  public func begin(at now: Instant, maxSteps: Int = .max, maxRows: Int = .max) {
    assert(!isOpen, "the commit before was neither finished nor rolled back")
    isOpen = true
    log.allow(steps: maxSteps)
    rows = RowBudget(limit: maxRows)
    hasRowsForViews = false
    self.now = max(now, self.now)
    operation.begin()
  }

  /// Rolls back everything since `begin`.
  public func rollBack() {
    graph.counts.endCommit()
    let hadStructures = log.undo(to: .start)
    keyedSectionsDidChange()
    forks.discard()
    if hadStructures { graph.structureDidChange() } else { graph.counts.advance() }
    log.finish()
    operation.abandon()
    close()
  }

  /// Commits everything since `begin` under the next revision and notifies `observer`. If nothing changed, there is no
  /// commit.
  ///
  /// Returns whether there was a commit. Afterwards ``result`` is still the change of the last operation.
  @discardableResult
  public func finish(to observer: (any CommitObserver)? = nil) -> Bool {
    graph.counts.endCommit()
    if pending >= 0, changes.count == 0, !log.hasStructures {
      finishSingle(to: observer)
      return true
    }
    let structural = log.hasStructures
    let lent = composeChanges()
    let changed = structural || (0..<changes.count).contains { !changes[$0].pointee.change.isEmpty }
    if changed {
      stage = .publishing
      revision &+= 1
      publish(to: observer)
    }
    release()
    if let lent { swap(&changes[lent].pointee.change, &operation.result) }
    close()
    return changed
  }

  /// Finishes a commit of one operation on one feed without structural steps, the common case. The change is swapped
  /// between slots; nothing is allocated.
  private func finishSingle(to observer: (any CommitObserver)?) {
    revision &+= 1
    let slot = changes.open(pending)
    swap(&changes[slot].pointee.change, &operation.result)
    if !publishAlongRoute(graph.table[pending], to: observer) { publish(to: observer) }
    swap(&changes[slot].pointee.change, &operation.result)
    release()
    pending = -1
    if divided != nil { divided = nil }
    changes.close()
    stage = .open
    isOpen = false
    sampleInvariants()
  }

  /// Frees what the commit kept for its rollback. Others can read the new state meanwhile.
  @inline(__always)
  private func release() {
    stage = .releasing
    if !forks.isEmpty { forks.keep() }
    log.finish()
  }

  private func close() {
    changes.close()
    hints.removeAll()
    if !rebinned.isEmpty {
      // A bin that this commit both added and removed was not published. Its number is free again.
      for number in rebinned { _ = graph.table[number].collection?.takeGoneBins() }
      rebinned.removeAll()
    }
    pending = -1
    divided = nil
    stage = .open
    isOpen = false
    graph.table.recycle()
    sampleInvariants()
  }

  /// Raises the revision to `revision`. Replay uses it for commits that it cannot repeat.
  func skip(to revision: UInt64) {
    assert(!isOpen, "a commit is under way")
    self.revision = max(self.revision, revision)
  }

  /// Restores the revision and the time from an image.
  func restore(revision: UInt64, at moment: Instant) {
    assert(!isOpen, "a commit is under way")
    self.revision = revision
    now = moment
    graph.counts.advance()
  }

  // MARK: Long commits

  /// What is being done with a long commit.
  private enum Stage {
    /// Operations change rows, or their changes are composed.
    case open
    /// The commit has its revision, and some feeds do not have their new state yet.
    case publishing
    /// All feeds have their new state.
    case releasing
  }

  /// Whether the open commit may stop between two of its steps, and others read meanwhile.
  @inline(__always)
  public var isLong: Bool { forks.steps > 0 }

  /// Announces that the next commit may stop between two of its steps, or that it has ended.
  ///
  /// - Parameter steps: the number of elements that it changes, if it changes no more than it names; 0 at the end.
  public func setLong(steps: Int) { forks.begin(steps: steps) }

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
    stage == .open && !log.hasStructures
      && !forks.inPlace.contains { number in
        let changed = graph.table[number]
        return ([changed] + changed.kind.bins).contains { graph.isShown($0, by: feed) }
      }
  }

  /// Lets others read the state before the commit, as far as that is possible; see ``isReadable``.
  public func suspend() {
    if hidesForks { forks.hide(graph) }
  }

  /// Ends `suspend`.
  public func resume() {
    if hidesForks { forks.show(graph) }
  }

  private var hidesForks: Bool { stage == .open && !log.hasStructures && !forks.isEmpty }

  /// Whether an operation on a feed shall change a copy of its rows: this costs more than the operation if it changes
  /// few.
  func shallFork(_ feed: FeedNumber, rows: Int, steps: Int?) -> Bool {
    forks.shallAdd(feed, rows: rows, steps: steps)
  }

  /// Exchanges the rows of a feed for a copy, which this commit changes.
  ///
  /// - Parameter exchange: exchanges the rows and the copy.
  func addFork(of feed: FeedNumber, exchange: @escaping () -> Void) { forks.add(feed, exchange) }

  // MARK: Operations

  /// Changes of fewer rows are not multiplied by the feeds that derive their own changes from them.
  private static let fewRows = 16

  /// Charges rows to the request before an operation changes them.
  ///
  /// Many rows are charged once more for each feed above that derives a change of its own from them.
  /// - Throws: `limitExceeded`.
  public func use(rows count: Int, of feed: FeedNumber) throws(FeedError) {
    let times = count > Self.fewRows ? graph.derivationCount(of: graph.table[feed]) + 1 : 1
    let (product, overflows) = count.multipliedReportingOverflow(by: times)
    try rows.use(overflows ? .max : product)
  }

  /// Charges rows to the request before an operation lists them.
  ///
  /// - Throws: `limitExceeded`.
  func use(rows count: Int) throws(FeedError) { try rows.use(count) }

  /// See ``Limits/countsAllWork``.
  private var countsAllWork: Bool { rows.isLimited }

  /// Charges the filters of views over the rows that the last operation added or updated, unless they take few steps.
  ///
  /// They run when the commit is published, which cannot fail. So they run here too, except for the first element of the
  /// request, which may be in several bins.
  /// - Throws: `limitExceeded`.
  public func useStepsOfViews(limit: Int) throws(FeedError) {
    guard pending >= 0, countsAllWork else { return }
    let isFirst = !hasRowsForViews
    hasRowsForViews = true
    if graph.slowViews == 0 || isFirst && operation.result.size <= 1 { return }
    let feed = graph.table[pending]
    var first: ElementText?
    for paths in [operation.result.added, operation.result.updated] {
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
        try checkRoom(forSteps: 0, limit: limit)
      }
    }
  }

  private func useSteps(of feed: FeedNumber, _ element: ElementText) {
    for (judge, paths) in graph.derivations(above: feed).judges {
      log.didUse(steps: judge.steps(over: element) &* paths)
    }
  }

  /// Refuses an operation whose filters would certainly use more steps than the request has left.
  ///
  /// - Throws: `limitExceeded`.
  func checkRoom(forSteps steps: Int, limit: Int) throws(FeedError) {
    if steps <= log.stepsLeft || !countsAllWork { return }
    throw .limitExceeded(
      limit: "maxRequestSteps", value: limit,
      reason:
        "the filters would take at least \(steps) steps over all elements; use fewer bins or elements, or start feedd "
        + "with a larger --max-request-steps")
  }

  /// The time of the commit or of its last step.
  var moment: Instant { now }

  /// Advances the time for the next step and returns it.
  @inline(__always)
  func tick() -> Instant {
    now = now.adding(nanoseconds: 1)
    return now
  }

  /// The change of the last operation, in the coordinates before it. Valid until the next operation.
  public var result: Change { operation.result }

  /// The number of rows and sections that ``result`` lists, and the number of sections that it adds.
  public var resultSize: (all: Int, sectionsAdded: Int) {
    (operation.result.size, operation.result.sectionsAdded.count)
  }

  /// Calls `body` with ``result`` without copying it.
  public func withResult(_ body: (borrowing Change) -> Void) {
    lendValue(of: &operation.result, body)
  }

  /// Starts the next operation.
  func startOperation() {
    if pending >= 0 {
      let slot = changes.open(pending)
      changes[slot].pointee.accumulator.add(operation.result)
      if let divided { divided.sections.operations.add(divided.flat) }
      pending = -1
    }
    if divided != nil { divided = nil }
    redefined = -1
    operation.begin()
  }

  /// Adds one step to the current operation, in the coordinates after the previous step.
  @inline(__always)
  func addStep(_ step: inout Change) { operation.add(&step) }

  /// Runs an operation of any number of steps on the rows of `feed`. If a step throws, the operation is rolled back.
  ///
  /// - Parameter rows: the rows to charge to the request first; see ``use(rows:of:)``.
  @inline(__always)
  func operate(
    on feed: FeedNumber, _ store: RowStore, rows: Int = 0, _ steps: () throws(FeedError) -> Void
  ) throws(FeedError) {
    startOperation()
    if isLong { forks.willChange(feed) }
    let position = log.position
    do throws(FeedError) {
      if rows > 0 { try use(rows: rows, of: feed) }
      try steps()
    } catch {
      throw abandon(error, to: position)
    }
    finishOperation(on: feed, store, since: position)
  }

  /// Ends an operation that changed rows of `feed` by the steps since `position`.
  @inline(__always)
  func finishOperation(on feed: FeedNumber, _ store: RowStore, since position: UndoLog.Position) {
    if let composed = operation.composedSteps() { operation.result = store.simplify(composed, log, since: position) }
    if let keyed = store.keyed { divide(by: keyed, store, since: position) }
    finishOperation(on: feed)
  }

  /// Replaces the result of the current operation, a change of rows in one section, by the change of the keyed
  /// sections.
  private func divide(by keyed: KeyedSections, _ store: RowStore, since position: UndoLog.Position) {
    let flat = operation.result
    let isStep = operation.stepCount <= 1
    operation.result = store.divide(flat, by: keyed, since: .operation, log, position, isStep: isStep)
    divided = (keyed, flat)
    tellParents(of: keyed)
  }

  /// Updates the feeds that show keyed sections, if sections were added or removed.
  private func tellParents(of keyed: KeyedSections) {
    guard keyed.endOperation() else { return }
    let feed = graph.table[keyed.number]
    graph.sectionsDidChange(of: feed)
    if graph.hasParents(feed.number) { graph.structureDidChange() } else { graph.counts.advance() }
  }

  /// Updates the feeds that show keyed sections after an undo.
  private func keyedSectionsDidChange() {
    for keyed in log.keyed { tellParents(of: keyed) }
  }

  /// Ends an operation with one change of `feed`.
  func finishOperation(on feed: FeedNumber, result: Change) {
    redefined = feed
    operation.result = result
    finishOperation(on: feed)
  }

  @inline(__always)
  private func finishOperation(on feed: FeedNumber) {
    if operation.isEmpty { return }
    pending = feed
    graph.counts.didChange(onlyUpdates: operation.result.onlyUpdates)
  }

  /// Rolls back the current operation because of `error`, and returns `error`.
  func abandon(_ error: FeedError, to position: UndoLog.Position) -> FeedError {
    undo(to: position)
    operation.abandon()
    return error
  }

  /// Undoes all steps since `position`.
  func undo(to position: UndoLog.Position) {
    defer { keyedSectionsDidChange() }
    if log.undo(to: position) { graph.structureDidChange() } else { graph.counts.advance() }
  }

  /// Logs a structural step that was made, with the closure that undoes it.
  func logStructure(undo: @escaping () -> Void) {
    log.append(undo: undo)
    graph.structureDidChange()
  }

  /// Whether feeds of an image are defined. The rows of `$feeds` then change without a commit: feeds that show them may be
  /// restored already, with later revisions.
  var isRestoring = false

  /// Updates the row of a feed in `$feeds` after the feed was defined, redefined or undefined, or got other children.
  func relist(_ feed: Feed) throws(FeedError) {
    let change = try graph.table.follow(feed, in: self)
    if change.isEmpty { return }
    if isRestoring { return graph.counts.listDidChange(onlyUpdates: change.onlyUpdates) }
    let slot = changes.open(graph.table.list.number)
    changes[slot].pointee.accumulator.add(change)
    graph.counts.listDidChange(onlyUpdates: change.onlyUpdates)
  }

  /// Publishes `feed` even if its operations changed no rows: its rows must be derived, or its watchers notified of its
  /// end.
  func touch(_ feed: FeedNumber) { _ = changes.open(feed) }

  /// Records that a collection was redefined.
  func didRebin(_ feed: FeedNumber) { rebinned.append(feed) }
  func undoRebin() { rebinned.removeLast() }

  /// Sets the animation hint of the last operation, a JSON text (Protocol/README.md, "Animation").
  public func setHint(_ text: [UInt8]) {
    if pending < 0 { return }
    let number = hints.add(text)
    setHint(number, of: pending)
    guard let collection = graph.table[pending].collection, collection.hasBins else { return }
    let keepsSections = operation.result.sectionsDeleted.isEmpty && operation.result.sectionsAdded.isEmpty
    if keepsSections && !collection.bins.isEmpty {
      for paths in [operation.result.deleted, operation.result.added, operation.result.updated] {
        for path in paths { setHint(number, of: collection.bins[Int(path.section)].number) }
      }
    } else {
      for bin in collection.goneBins + collection.bins { setHint(number, of: bin.number) }
    }
  }

  private func setHint(_ hint: Int, of feed: FeedNumber) {
    let slot = changes.open(feed)
    changes[slot].pointee.hint = hint
  }

  // MARK: Publication

  /// Composes the changes of all operations for each feed. If the last operation was the only one on its feed, returns the
  /// slot that borrowed `result`.
  private func composeChanges() -> Int? {
    var lent: Int?
    if pending >= 0 {
      let slot = changes.open(pending)
      if changes[slot].pointee.accumulator.isEmpty {
        swap(&changes[slot].pointee.change, &operation.result)
        lent = slot
      } else {
        changes[slot].pointee.accumulator.add(operation.result)
        if let divided { divided.sections.operations.add(divided.flat) }
      }
    } else if redefined >= 0, let slot = changes.find(redefined), changes[slot].pointee.accumulator.isEmpty {
      lent = slot
    }
    for slot in 0..<changes.count where slot != lent {
      let number = changes[slot].pointee.feed
      let composed = changes[slot].pointee.accumulator.finish()
      if composed.isEmpty { continue }
      if let store = graph.table[number].kind.rows, !rebinned.contains(number) {
        if let keyed = store.keyed, graph.table[number].isGone {
          // All sections are deleted, whatever happened to their rows before.
          changes[slot].pointee.change = composed.normalizingMoves()
          _ = keyed.operations.finish()
        } else if let keyed = store.keyed {
          let flat = store.simplify(keyed.operations.finish(), log, since: .start)
          changes[slot].pointee.change = store.divide(flat, by: keyed, since: .commit, log, .start, isStep: false)
        } else {
          changes[slot].pointee.change = store.simplify(composed, log, since: .start)
        }
      } else {
        changes[slot].pointee.change = composed.normalizingMoves()
      }
    }
    return lent
  }

  /// Publishes all feeds that have a slot, each after its sources. Feeds that show changed rows get a slot on the way.
  private func publish(to observer: (any CommitObserver)?) {
    var order = (0..<changes.count).sorted { rank($0) < rank($1) }
    var next = 0
    while next < order.count {
      let slot = order[next]
      next += 1
      let feed = graph.table[changes[slot].pointee.feed]
      if let derived = feed.derived { derive(feed, derived, slot) }
      if changes[slot].pointee.change.isEmpty && !feed.isGone { continue }
      let known = changes.count
      propagate(feed, slot)
      for new in known..<changes.count {
        order.insert(new, at: order.lastIndex { rank($0) < rank(new) }.map { $0 + 1 } ?? 0)
      }
      announce(feed, slot, shift: 0, updated: nil, to: observer)
      if feed.isGone { observer?.didEnd(feed) }
    }
  }

  /// The position in the order of publication. Slots of equal rank are in the order in which they were opened.
  private func rank(_ slot: Int) -> (Int, Int) { (graph.rank(of: changes[slot].pointee.feed), slot) }

  private func derive(_ feed: Feed, _ derived: any DerivedKind, _ slot: Int) {
    changes.derive(slot) { sources, change in
      change.removeAll(keepingCapacity: true)
      if feed.isGone {
        change.sectionsDeleted = (0..<derived.publishedSectionCount).map { UInt32($0) }
      } else {
        derived.derive(sources, into: &change)
      }
    }
  }

  /// Opens slots for the feeds that show the changed rows, and records the change in them.
  private func propagate(_ feed: Feed, _ slot: Int) {
    for parent in graph.parents(of: feed.number) {
      let target = changes.open(parent.feed)
      changes.note(.init(place: parent.place, slot: slot, shift: 0), for: target)
      if graph.table[parent.feed].derived?.shows(parent.place) == true { passHint(from: slot, to: target) }
    }
    guard let collection = feed.collection, collection.hasBins else { return }
    let change = changes[slot].pointee.change
    if feed.isGone || collection.bins.isEmpty || !change.sectionsDeleted.isEmpty || !change.sectionsAdded.isEmpty {
      for bin in collection.takeGoneBins() + collection.bins { propagate(from: slot, toBin: bin) }
      return
    }
    var concerned = Set<UInt32>()
    for paths in [change.deleted, change.added, change.updated] { for path in paths { concerned.insert(path.section) } }
    for section in concerned.sorted() {
      let bin = collection.bins[Int(section)]
      if graph.isSeen(bin) { propagate(from: slot, toBin: bin) } else { bin.skip(to: revision) }
    }
  }

  private func propagate(from slot: Int, toBin bin: Feed) {
    let target = changes.open(bin.number)
    changes.note(.init(place: 0, slot: slot, shift: 0), for: target)
  }

  private func passHint(from slot: Int, to target: Int) {
    let hint = changes[slot].pointee.hint
    if hint > changes[target].pointee.hint { changes[target].pointee.hint = hint }
  }

  /// Publishes a change of rows of one feed, and its consequences for all feeds that show these rows, along the cached
  /// route. Returns false, without any effect, if the change affects sections or a watched or shown bin, or the route
  /// is not whole.
  private func publishAlongRoute(_ feed: Feed, to observer: (any CommitObserver)?) -> Bool {
    let change = changes[0]
    guard change.pointee.change.sectionsDeleted.isEmpty, change.pointee.change.sectionsAdded.isEmpty else {
      return false
    }
    let route = graph.route(of: feed)
    guard route.isWhole, feed.withCollection({ concernsNoBin($0, change) }) ?? true else { return false }
    var updated: ElementText?
    if change.pointee.change.onlyUpdates && change.pointee.change.updated.count == 1 {
      updated = feed.element(at: change.pointee.change.updated[0])
    }
    announce(feed, 0, shift: 0, updated: updated, to: observer)
    if !route.steps.isEmpty { follow(route, updated, to: observer) }
    return true
  }

  /// Whether no bin with changed rows is watched, shown or selected. If so, these bins only get the new revision.
  private func concernsNoBin(_ collection: CollectionKind, _ slot: UnsafeMutablePointer<ChangeTable.Slot>) -> Bool {
    if !collection.hasBins { return true }
    // Iterates by index: an iterator would retain each list.
    for index in slot.pointee.change.updated.indices {
      if isSeen(collection, slot.pointee.change.updated[index]) { return false }
    }
    for index in slot.pointee.change.added.indices {
      if isSeen(collection, slot.pointee.change.added[index]) { return false }
    }
    for index in slot.pointee.change.deleted.indices {
      if isSeen(collection, slot.pointee.change.deleted[index]) { return false }
    }
    for path in slot.pointee.change.deleted { collection.bins[Int(path.section)].skip(to: revision) }
    for path in slot.pointee.change.added { collection.bins[Int(path.section)].skip(to: revision) }
    for index in slot.pointee.change.updated.indices {
      collection.bins[Int(slot.pointee.change.updated[index].section)].skip(to: revision)
    }
    return true
  }

  @inline(__always)
  private func isSeen(_ collection: CollectionKind, _ path: IndexPath) -> Bool {
    graph.isSeen(collection.bins[Int(path.section)])
  }

  private func follow(_ route: Route, _ updated: ElementText?, to observer: (any CommitObserver)?) {
    for step in route.steps {
      step.feed._withUnsafeGuaranteedRef { feed in
        if step.derives {
          let slot = changes.open(feed.number)
          assert(slot == step.slot, "the route and the change table disagree")
          if changes[step.sourceSlot].pointee.change.isEmpty { return }
          changes.note(.init(place: step.place, slot: step.sourceSlot, shift: step.sourceShift), for: slot)
          if let derived = feed.derived { derive(feed, derived, slot) }
        }
        // If the source did not change, this feed did not change either.
        if !changes[step.slot].pointee.change.isEmpty {
          // A feed that derives its change may list rows other than the updated one.
          let isUpdate = changes[step.slot].pointee.change.onlyUpdates
          announce(feed, step.slot, shift: step.shift, updated: isUpdate ? updated : nil, to: observer)
        }
      }
    }
  }

  /// Records the change of a slot, its sections shifted, as the change of `feed`, and notifies the observer.
  private func announce(
    _ feed: Feed, _ slot: Int, shift: UInt32, updated: ElementText?, to observer: (any CommitObserver)?
  ) {
    let from = feed.revision
    let source = changes[slot]
    let isRecorded = feed.record(&source.pointee.change, shift: shift, revision: revision, at: now)
    let tells = isRecorded && feed.isWatched && observer != nil
    guard tells || !feed.selection.isEmpty else { return }
    if shift == 0 {
      changes.lend(slot) { tell(of: feed, $0) }
    } else {
      var change = Change()
      change.append(source.pointee.change, before: Int(shift), after: Int(shift))
      tell(of: feed, change)
    }

    func tell(of feed: Feed, _ change: borrowing Change) {
      if tells {
        observer?.didChange(
          feed, by: change, Publication(from: from, updatedElement: updated, hint: hints[source.pointee.hint]))
      }
      if !feed.isGone, feed.carrySelection(across: change) { observer?.didCarrySelection(of: feed) }
    }
  }

  // MARK: Invariants

  private func sampleInvariants() {
    #if CHECK_INVARIANTS
      if revision % 16 == 0 { checkInvariants() }
    #endif
  }

  /// Checks the invariants that hold between commits. O(feeds).
  func checkInvariants() {
    precondition(!isOpen && pending < 0 && log.isEmpty && hints.isEmpty, "something is left of the commit")
    precondition(changes.count == 0 && rebinned.isEmpty, "changes are left of the commit")
    changes.checkInvariants()
    log.checkInvariants()
    graph.checkInvariants()
    graph.table.checkInvariants()
  }
}

/// The rows that one request may still change.
private struct RowBudget {
  private let limit: Int
  private var left: Int

  init(limit: Int = .max) {
    self.limit = limit
    left = limit
  }

  var isLimited: Bool { limit < .max }

  mutating func use(_ count: Int) throws(FeedError) {
    guard count <= left else {
      throw .limitExceeded(
        limit: "maxRequestRows", value: limit,
        reason:
          "the request would change \(count) rows, counted again for each feed that derives its own change; change fewer "
          + "at a time, or start feedd with a larger --max-request-rows")
    }
    left -= count
  }
}
