import FeedChange

/// The changes of feeds in the open commit, and their way to the feeds above, to histories, selections and watchers.
///
/// Invariant: between commits there are no changes and no hints.
final class Publisher {
  private let graph: FeedGraph
  private let log: UndoLog
  private var changes = ChangeTable()
  /// The animation hints of the operations of the open commit, numbered from 1 (Protocol/README.md, "Animation"). If several
  /// apply to one feed, the last one, with the largest number, is used.
  private var hints: [[UInt8]] = []
  /// A change of which a feed shows the sections after others. Its memory is reused; empty between two feeds.
  private var shifted = Change()
  /// The collections and lists that this commit redefined. The undo log does not pair their rows.
  private var rebinned: [FeedNumber] = []
  /// The revision and the time of the commit that is published, and the time before its first step.
  private var revision: UInt64 = 0
  private var moment = Instant(nanoseconds: 0)
  private var start = Instant(nanoseconds: 0)
  /// The number of changes that were published. Most are recorded in histories.
  private(set) var publishedChanges = 0
  /// The rows and sections of the changes that feeds derived and did not share with a source.
  private(set) var derivedEntries = 0
  /// The entries of long changes that one commit records, about 128 MiB. What feeds above that nobody watches would record besides
  /// is discarded, as it would be soon: all histories together have a limit of bytes.
  var mostLongEntries = 16 << 20
  /// The entries of the long changes that the commit of a revision has recorded.
  private var longEntries: (of: UInt64, count: Int) = (0, 0)

  init(graph: FeedGraph, log: UndoLog) { (self.graph, self.log) = (graph, log) }

  /// Whether no change but that of the last operation is known.
  @inline(__always)
  var isEmpty: Bool { changes.count == 0 }

  // MARK: Collecting changes

  /// Opens the slot of a feed, which is published even if its operations changed no rows.
  @discardableResult
  @inline(__always)
  func open(_ feed: FeedNumber) -> Int { changes.open(feed) }

  /// Whether the commit publishes a feed, as far as is known: feeds above those that it publishes get a slot later.
  func hasSlot(_ feed: FeedNumber) -> Bool { changes.find(feed) != nil }

  /// Adds the change of an operation that is not the last one.
  func add(_ operation: borrowing Operation) {
    add(operation.result, of: operation.pending)
    if let sections = operation.dividedBy { sections.operations.add(operation.flat) }
  }

  /// Adds a change of a feed, in the coordinates after its changes before.
  func add(_ change: Change, of feed: FeedNumber) {
    let slot = changes.open(feed)
    changes[slot].pointee.accumulator.add(change) { log.pace.didCompose() }
  }

  /// Exchanges the result of an operation and the change in a slot.
  @inline(__always)
  func exchange(_ operation: inout Operation, _ slot: Int) { swap(&changes[slot].pointee.change, &operation.result) }
  func didRebin(_ feed: FeedNumber) { rebinned.append(feed) }
  func undoRebin() { rebinned.removeLast() }
  func isRebinned(_ feed: FeedNumber) -> Bool { rebinned.contains(feed) }

  func setHint(_ text: [UInt8], of operation: borrowing Operation) {
    if operation.pending < 0 { return }
    hints.append(text)
    let number = hints.count
    setHint(number, of: operation.pending)
    guard let collection = graph.table[operation.pending].collection, collection.hasBins else { return }
    if operation.result.hasSameSections && !collection.bins.isEmpty {
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

  /// Composes the changes of all operations. Returns the slot that has borrowed the result of the last one, if any.
  func compose(_ operation: inout Operation) -> Int? {
    var lender: Int?
    if operation.pending >= 0 {
      let slot = changes.open(operation.pending)
      if changes[slot].pointee.accumulator.isEmpty {
        exchange(&operation, slot)
        lender = slot
      } else {
        add(operation)
      }
    } else if operation.redefined >= 0, let slot = changes.find(operation.redefined),
      changes[slot].pointee.accumulator.isEmpty
    {
      lender = slot
    }
    let entries = changes.count > Self.fewFeeds ? log.entriesByStore() : nil
    for slot in 0..<changes.count where slot != lender { compose(slot, entries) }
    return lender
  }

  /// Up to so many feeds, the log is searched for the entries of each.
  private static let fewFeeds = 8

  private func compose(_ slot: Int, _ entries: UndoLog.EntriesByStore?) {
    let feed = graph.table[changes[slot].pointee.feed]
    let composed = changes[slot].pointee.accumulator.finish { log.pace.didCompose() }
    if composed.isEmpty { return }
    let isRebinned = isRebinned(feed.number)
    // A redefined collection has other rows.
    guard let store = feed.kind.rows, !isRebinned || feed.collection == nil else {
      return changes[slot].pointee.change = composed.normalizingMoves { log.pace.didCompareMoves() }
    }
    guard let keyed = store.keyed else {
      return changes[slot].pointee.change = store.simplify(
        composed, log, since: .start, entries, pairsRows: !isRebinned)
    }
    if feed.isGone {
      // All sections are deleted, whatever happened to their rows before.
      changes[slot].pointee.change = composed.normalizingMoves { log.pace.didCompareMoves() }
      _ = keyed.operations.finish()
    } else {
      let flat = store.simplify(keyed.operations.finish(), log, since: .start, entries)
      var change = Change()
      store.divide(flat, by: keyed, since: .commit, log, .start, isStep: false, into: &change)
      changes[slot].pointee.change = change
    }
  }

  var hasChanges: Bool { (0..<changes.count).contains { !changes[$0].pointee.change.isEmpty } }

  /// Prepares histories to record the changes after `compose`. Those of derived feeds are not known yet.
  func prepareHistories() {
    for slot in 0..<changes.count {
      graph.table[changes[slot].pointee.feed].prepareToRecord(entries: changes[slot].pointee.change.size, log.pace)
    }
  }

  @inline(__always)
  func close() {
    changes.close()
    if !hints.isEmpty { hints.removeAll() }
    if !rebinned.isEmpty { closeRebinned() }
  }

  private func closeRebinned() {
    // A bin that this commit both added and removed was not published. Its number is free again.
    for number in rebinned {
      graph.table[number].collection?.didRebin()
      _ = graph.table[number].collection?.takeGoneBins()
    }
    rebinned.removeAll()
  }

  // MARK: Publication

  /// Publishes the changes of all feeds under a revision.
  /// - Parameter start: the time before the first step of the commit.
  func publish(as revision: UInt64, from start: Instant, at moment: Instant, to observer: (any CommitObserver)?) {
    (self.revision, self.start, self.moment) = (revision, start, moment)
    publishSlots(to: observer)
  }

  /// Publishes the change of the only operation, which redefined no feed, in the first of three ways that can: as one row, along the
  /// route, or by a slot for each feed. The feed comes first, then those above; each records its change, then tells its watches.
  @inline(__always)
  func publishOnly(
    _ operation: inout Operation, as revision: UInt64, at moment: Instant, to observer: (any CommitObserver)?
  ) {
    (self.revision, self.moment) = (revision, moment)
    publishedChanges &+= 1
    let feed = graph.table.unretained(operation.pending)
    // The short ways do not stop for others.
    let mayStop = log.pace.isActive
    if let row = operation.row, !mayStop,
      feed._withUnsafeGuaranteedRef({ publishRow(row, operation.element, of: $0, to: observer) })
    {
      return
    }
    operation.expand()
    let slot = open(operation.pending)
    exchange(&operation, slot)
    if mayStop || !feed._withUnsafeGuaranteedRef({ publishAlongRoute($0, to: observer) }) { publishSlots(to: observer) }
    exchange(&operation, slot)
  }

  /// Publishes the change of one row, and its consequences for all feeds that show the row. Returns false, without any effect, if
  /// it moves a selection, concerns a bin that is watched, shown or selected, or becomes more than the change of one row above.
  @inline(__always)
  private func publishRow(
    _ row: ChangeOfOne, _ element: ElementText?, of feed: Feed, to observer: (any CommitObserver)?
  ) -> Bool {
    guard row.isUpdate || feed.selection.isEmpty else { return false }
    guard graph.hasParents(feed.number) else {
      guard feed.withCollection({ skipUnseenBinsOfRow($0, row) }) ?? true else { return false }
      announceRow(feed, row, element, to: observer)
      return true
    }
    return graph.withRoute(of: feed) { route in
      guard route.carries(row), feed.withCollection({ skipUnseenBinsOfRow($0, row) }) ?? true else { return false }
      announceRow(feed, row, element, to: observer)
      publishedChanges &+= route.steps.count
      route.follow(row) { announceRow($0, $1, element, to: observer) }
      return true
    }
  }

  @inline(__always)
  private func announceRow(_ feed: Feed, _ row: ChangeOfOne, _ text: ElementText?, to observer: (any CommitObserver)?) {
    let from = feed.revision
    guard feed.record(row, revision: revision, at: moment) else { return }
    if feed.hasChannel { observer?.didChange(feed, by: row, from: from, text) }
  }

  /// Gives the bins of the changed row the new revision, unless one of them is watched, shown or selected. Returns whether it did.
  @inline(__always)
  private func skipUnseenBinsOfRow(_ collection: CollectionKind, _ row: ChangeOfOne) -> Bool {
    if !collection.hasBins { return true }
    switch row {
    case .updated(let path), .added(let path), .deleted(let path):
      let bin = collection.bins[Int(path.section)]
      if graph.isSeen(bin) { return false }
      bin.skip(to: revision)
    case .moved(let from, let to):
      let (bin, other) = (collection.bins[Int(from.section)], collection.bins[Int(to.section)])
      if graph.isSeen(bin) || graph.isSeen(other) { return false }
      bin.skip(to: revision)
      other.skip(to: revision)
    }
    return true
  }

  /// Publishes all feeds that have a slot, each after its sources. Feeds that show changed rows get a slot on the way.
  ///
  /// A long commit stops between two feeds. Until it ends, only feeds that it does not concern are read.
  private func publishSlots(to observer: (any CommitObserver)?) {
    // The feeds that no longer show rows of managed feeds.
    let settled = graph.settled
    for feed in settled.sorted() { open(feed) }
    let changed = changes.count
    var order = (0..<changes.count).sorted { rank($0) < rank($1) }
    var next = 0
    while next < order.count {
      let slot = order[next]
      next += 1
      let feed = graph.table[changes[slot].pointee.feed]
      if let derived = feed.derived {
        // A feed that an operation changed has its change in its own slot.
        if slot < changed || !share(derived, slot) { derive(feed, derived, slot) }
        log.pace.spend(1 &+ changes[slot].pointee.change.size)
      }
      if changes[changes.origin(of: slot).slot].pointee.change.isEmpty && !feed.isGone { continue }
      let known = changes.count
      propagate(feed, slot)
      for new in known..<changes.count {
        order.insert(new, at: order.lastIndex { rank($0) < rank(new) }.map { $0 + 1 } ?? 0)
      }
    }
    // The feeds with the name of another one that ends.
    var successors: [Feed] = []
    // The deltas that were told before a stop are written then, so that they do not add up.
    for slot in order {
      let feed = graph.table[changes[slot].pointee.feed]
      let (isSettled, origin) = (settled.contains(feed.number), changes.origin(of: slot))
      if changes[origin.slot].pointee.change.isEmpty && !feed.isGone && !isSettled { continue }
      publishedChanges &+= 1
      // The observer lets go of a feed that ends.
      let hasChannel = feed.hasChannel
      // A feed that no longer shows rows of managed feeds, which replay does not know, always gets the revision of the commit. No
      // watch can resume across it, and nothing is selected, which is told once: not also where the change moved the selected rows.
      let wasSelected = isSettled && feed.deselectAll()
      announce(
        feed, changes.change(origin.slot), hint: changes[slot].pointee.hint, shift: origin.shift, updated: nil,
        to: observer)
      if isSettled { feed.forgetPast(at: revision) }
      if wasSelected { observer?.didCarrySelection(of: feed) }
      if feed.isGone {
        if feed.hasHistory, let successor = graph.table.find(feed.name) { successors.append(successor) }
        observer?.didEnd(feed)
      }
      log.pace.spend(hasChannel ? Self.unitsOfADelta : 1)
    }
    for feed in successors { feed.beginPast(after: revision) }
  }

  /// The units of work to tell the change of a watched feed, whose length is not known: enough to look at the clock.
  private static let unitsOfADelta = 256

  /// The position in the order of publication. Slots of equal rank are in the order in which they were opened.
  private func rank(_ slot: Int) -> (Int, Int) { (graph.rank(of: changes[slot].pointee.feed), slot) }

  private func derive(_ feed: Feed, _ derived: any DerivedKind, _ slot: Int) {
    let pace = log.hasStructures || log.pace.isActive ? log.pace : nil
    changes.sortSources(of: slot)
    changes.derive(slot, redefiningSince: log.hasStructures ? start : nil, pace) { sources, change in
      change.removeAll(keepingCapacity: true)
      if feed.isGone {
        change.sectionsDeleted = (0..<derived.publishedSectionCount).map { UInt32($0) }
      } else {
        derived.derive(sources, into: &change)
      }
    }
    derivedEntries &+= changes[slot].pointee.change.size
  }

  /// Lets a feed share the change of its only source that changed, as along a route. Returns false if it derives its own.
  private func share(_ derived: any DerivedKind, _ slot: Int) -> Bool {
    guard let source = changes.onlySource(of: slot),
      let offset = derived.shareChange(ofSourceAt: source.place, log.pace)
    else { return false }
    changes.share(slot, with: source, offset: offset)
    return true
  }

  /// Opens slots for the feeds that show the changed rows, and records the change in them.
  private func propagate(_ feed: Feed, _ slot: Int) {
    let origin = changes.origin(of: slot)
    for parent in graph.parents(of: feed.number) {
      let target = changes.open(parent.feed)
      changes.note(.init(place: parent.place, slot: origin.slot, shift: origin.shift), for: target)
      let hint = changes[slot].pointee.hint
      if hint > changes[target].pointee.hint, graph.table[parent.feed].derived?.shows(parent.place) == true {
        changes[target].pointee.hint = hint
      }
    }
    guard let collection = feed.collection, collection.hasBins else { return }
    let change = changes[slot].pointee.change
    if feed.isGone || collection.bins.isEmpty || !change.hasSameSections {
      for bin in collection.takeGoneBins() { propagate(from: slot, toBin: bin) }
      for bin in collection.bins {
        log.pace.spend()
        if feed.isGone || graph.isSeen(bin) {
          propagate(from: slot, toBin: bin)
        } else if let kind = bin.kind as? BinKind, kind.follow(change, log.pace) {
          bin.skip(to: revision)
        }
      }
      return
    }
    var concerned = Set<UInt32>()
    for paths in [change.deleted, change.added, change.updated] {
      // The rows of a section follow each other.
      var last: UInt32?
      for path in paths where path.section != last {
        concerned.insert(path.section)
        last = path.section
      }
    }
    for section in concerned.sorted() {
      let bin = collection.bins[Int(section)]
      if graph.isSeen(bin) { propagate(from: slot, toBin: bin) } else { bin.skip(to: revision) }
    }
  }

  private func propagate(from slot: Int, toBin bin: Feed) {
    let target = changes.open(bin.number)
    changes.note(.init(place: 0, slot: slot, shift: 0), for: target)
  }

  /// Publishes the change in the first slot, and its consequences for all feeds that show the changed rows, along the cached
  /// route. Returns false, without any effect, if the change adds or removes sections or concerns a watched or shown bin,
  /// or the route is not whole.
  private func publishAlongRoute(_ feed: Feed, to observer: (any CommitObserver)?) -> Bool {
    let change = changes.change(0)
    let route = graph.hasParents(feed.number) ? graph.route(of: feed) : nil
    guard change.pointee.hasSameSections || route == nil && feed.derived == nil, route?.isWhole ?? true,
      feed.withCollection({ skipUnseenBins($0, change) }) ?? true
    else { return false }
    let updated = onlyUpdatedElement(of: feed, change)
    announceSlot(feed, 0, shift: 0, updated: updated, to: observer)
    if let route, !route.steps.isEmpty { announceAlongRoute(route, updated, to: observer) }
    return true
  }

  /// The element of the row that a change lists; nil unless it is the update of one row.
  @inline(__always)
  private func onlyUpdatedElement(of feed: Feed, _ change: UnsafeMutablePointer<Change>) -> ElementText? {
    guard change.pointee.onlyUpdates, change.pointee.updated.count == 1 else { return nil }
    return feed.element(at: change.pointee.updated[0])
  }

  /// Gives the bins of the changed rows the new revision, unless one of them is watched, shown or selected. Returns whether it did.
  private func skipUnseenBins(_ collection: CollectionKind, _ change: UnsafeMutablePointer<Change>) -> Bool {
    if !collection.hasBins { return true }
    guard change.pointee.onlyUpdates, change.pointee.updated.count == 1 else {
      return skipUnseenBinsOfMany(collection, change)
    }
    return skipUnseenBinsOfRow(collection, .updated(change.pointee.updated[0]))
  }

  @inline(never)
  private func skipUnseenBinsOfMany(_ collection: CollectionKind, _ change: UnsafeMutablePointer<Change>) -> Bool {
    // Iterates by index: an iterator would retain each list.
    for index in change.pointee.updated.indices {
      if isSeen(collection, change.pointee.updated[index]) { return false }
    }
    for index in change.pointee.added.indices {
      if isSeen(collection, change.pointee.added[index]) { return false }
    }
    for index in change.pointee.deleted.indices {
      if isSeen(collection, change.pointee.deleted[index]) { return false }
    }
    for path in change.pointee.deleted { collection.bins[Int(path.section)].skip(to: revision) }
    for path in change.pointee.added { collection.bins[Int(path.section)].skip(to: revision) }
    for index in change.pointee.updated.indices {
      collection.bins[Int(change.pointee.updated[index].section)].skip(to: revision)
    }
    return true
  }

  @inline(__always)
  private func isSeen(_ collection: CollectionKind, _ path: IndexPath) -> Bool {
    graph.isSeen(collection.bins[Int(path.section)])
  }

  private func announceAlongRoute(_ route: Route, _ updated: ElementText?, to observer: (any CommitObserver)?) {
    publishedChanges &+= route.steps.count
    for step in route.steps {
      step.feed._withUnsafeGuaranteedRef { feed in
        if step.derives {
          let slot = changes.open(feed.number)
          assert(slot == step.slot, "the route and the change table disagree")
          if changes.change(step.sourceSlot).pointee.isEmpty { return }
          // The slot is new, so its change is empty.
          let source = ChangeTable.SourceEntry(place: step.place, slot: step.sourceSlot, shift: step.sourceShift)
          changes.derive(slot, from: source) { feed.derive($0, into: &$1) }
        }
        // If the source did not change, this feed did not change either.
        let change = changes.change(step.slot)
        if !change.pointee.isEmpty {
          // A feed that derives its change may list rows other than the updated one.
          let isUpdate = change.pointee.onlyUpdates
          announceSlot(feed, step.slot, shift: step.shift, updated: isUpdate ? updated : nil, to: observer)
        }
      }
    }
  }

  @inline(__always)
  private func announceSlot(
    _ feed: Feed, _ slot: Int, shift: UInt32, updated: ElementText?, to observer: (any CommitObserver)?
  ) {
    announce(feed, changes.change(slot), hint: changes[slot].pointee.hint, shift: shift, updated: updated, to: observer)
  }

  /// Records a change, its sections shifted, as the change of `feed`, and notifies the observer.
  private func announce(
    _ feed: Feed, _ source: UnsafeMutablePointer<Change>, hint: Int, shift: UInt32, updated: ElementText?,
    to observer: (any CommitObserver)?
  ) {
    let from = feed.revision
    let isRecorded: Bool
    if source.pointee.size <= Feed.fewEntries {
      isRecorded = feed.record(&source.pointee, shift: shift, revision: revision, at: moment, nil)
    } else if mayRecord(source.pointee.size) || feed.hasChannel {
      // Passing the pace to every feed above would count references to it.
      isRecorded = feed.record(&source.pointee, shift: shift, revision: revision, at: moment, log.pace)
    } else {
      feed.forgetHistory(at: revision)
      isRecorded = false
    }
    let tells = isRecorded && feed.hasChannel && observer != nil
    guard tells || !feed.selection.isEmpty else { return }
    if shift == 0 {
      lendValue(of: source) { tell(of: feed, $0) }
    } else {
      shifted.append(source.pointee, before: Int(shift), after: Int(shift))
      lendValue(of: &shifted) { tell(of: feed, $0) }
      shifted.recycle()
    }

    func tell(of feed: Feed, _ change: borrowing Change) {
      if tells {
        let hint = hint > 0 ? hints[hint - 1] : nil
        observer?.didChange(feed, by: change, Publication(from: from, updatedElement: updated, hint: hint))
      }
      if !feed.isGone, feed.carrySelection(across: change) { observer?.didCarrySelection(of: feed) }
    }
  }

  /// Counts a long change that a feed records. Returns whether the commit has recorded few.
  private func mayRecord(_ entries: Int) -> Bool {
    if longEntries.of != revision { longEntries = (revision, 0) }
    if longEntries.count >= mostLongEntries { return false }
    longEntries.count &+= entries
    return true
  }

  /// Checks the invariants that hold between commits. O(feeds).
  func checkInvariants() {
    precondition(changes.count == 0 && hints.isEmpty && rebinned.isEmpty, "changes are left of the commit")
    precondition(shifted.isEmpty, "a change is left that was told")
    changes.checkInvariants()
  }
}
