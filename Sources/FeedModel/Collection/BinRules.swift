import FeedChange
import FeedJSON

/// The rules of bins (Protocol/README.md, "Collections").
extension CollectionState {
  /// Upserts one element by identity and leaves the change in `row` or `step`; none if its text is the same.
  ///
  /// Each bin judges the element; if the collection is exclusive, only until the first bin accepts it. An element that no
  /// bin accepts is not kept. O(bins · log n).
  /// - Throws: `noIdentity` or `limitExceeded`, before the first step: the commit may be unable to undo steps.
  func upsertElement(_ given: JSONView, index place: Int, at moment: Instant, _ log: UndoLog) throws(FeedError) {
    beginStep()
    let element = try compact(given, index: place, log.pace)
    guard let value = definition.id.resolve(element) else {
      throw .noIdentity(feed: feed, index: place, path: definition.id.text, found: "missing")
    }
    noteIdentity(at: value.byteOffset)
    let known = try find(value, index: place)
    if let known { touchRows(known) }
    if let known, Self.equal(elements.text(of: known).text, element.text) { return }
    let isAccepted = try decide(element, index: place, log)
    // While the filters judged the element, reads may have used the memory of the identity.
    if log.pace.isActive { _ = try find(value, index: place) }
    guard isAccepted else {
      if let known { remove(known, log) }
      return
    }
    try makeKeys(of: element, index: place, log)
    try checkRoom(for: element, keys: log.rules >= 4 ? keys.count : 0, replacing: known, log)
    if let keyed, deferred == nil {
      keyed.prepare(keys.bytes, for: known, isSorted: bins[0].order > 0) { self.place(keys.bytes, in: 0) }
    }
    let text = try makeText(element, identity: identity.bytes, at: value, keys: keys.bytes)
    if let known {
      // First, because it compares the keys with the present ones.
      placeRows(known, text, log)
      preserve(known)
      exchangeText(known, text, at: moment, log)
      if keepsOrderOfChange { touch(known, at: moment, log) }
    } else {
      let handle = addElement(text, at: moment, log)
      placeRows(handle, text, log)
    }
  }

  /// Sets `keys` to those of an element. A short definition may have thousands of sort terms, each of which looks at the members
  /// of each element and repeats a value.
  /// - Throws: `limitExceeded` for `maxElementBytes` if the sort keys are too long, or for `maxQuerySteps`.
  private func makeKeys(of element: JSONView, index place: Int, _ log: UndoLog) throws(FeedError) {
    // Each term counts as a step. Most elements are too short for many terms to take long.
    if stepsPerElement &* element.text.count <= Self.fewBytesOfTerms || log.rules < 4 {
      appendKeys(of: element)
      return
    }
    var room = SortOrder.Room(bytes: limits.maxKeyBytes, steps: limits.maxQuerySteps)
    let isWhole = appendKeys(of: element, within: &room)
    // Elements with few members count with their terms already; see `stepsPerElement`.
    log.didUse(steps: (limits.maxQuerySteps &- room.steps) >> 6)
    guard room.steps >= 0 else {
      throw limits.exceeded(
        \.maxQuerySteps,
        "the sort terms of \(feed) take too many steps over element \(grouped(place)); push a smaller one, sort by fewer "
          + "terms")
    }
    guard isWhole else {
      throw limits.exceeded(
        \.maxElementBytes,
        "the sort keys of element \(grouped(place)) take more than \(grouped(limits.maxKeyBytes)) bytes; push a smaller one, "
          + "sort by fewer terms")
    }
  }

  /// The bytes of an element, times the sort terms that look at it, up to which their work is not counted.
  private static let fewBytesOfTerms = 4 << 10

  /// Prefetches the rows of an element, whose cache misses then overlap: an update of a million is 10 % faster.
  private func touchRows(_ handle: UInt32) {
    var words: UInt32 = 0
    for bin in bins.indices { words ^= bins[bin].section.rows.touch(handle) }
    if let keyed, deferred == nil { words ^= keyed.table.touchMemory(of: handle) }
    touched = words
  }

  /// Removes an element from all its bins, ascending, and deletes it. Lists the rows.
  func remove(_ handle: UInt32, _ log: UndoLog) {
    touchRows(handle)
    shownElement = nil
    for bin in bins.indices {
      guard let row = bins[bin].section.rows.row(of: handle) else { continue }
      list(.deleted(IndexPath(section: UInt32(bin), row: UInt32(row))))
      removeRow(section: bin, at: row, log)
    }
    removeElement(handle, log)
  }

  /// Lets every bin judge the element and stores the verdicts. Returns false if no bin accepts it.
  ///
  /// The filters of one element share `maxQuerySteps`; all elements of a request share the steps of the request. Steps
  /// are counted instead of time, so that replay makes the same decisions.
  private func decide(_ element: JSONView, index place: Int, _ log: UndoLog) throws(FeedError) -> Bool {
    var any = false
    let allowed = min(limits.maxQuerySteps, log.stepsLeft)
    var steps = allowed
    let pace = log.pace.evaluations
    for bin in bins.indices {
      let accepted = !(any && definition.exclusive) && bins[bin].accepts(element, steps: &steps, pace: pace)
      verdicts[bin] = accepted
      any = any || accepted
      if steps < 0 {
        let error = tooManySteps(place, log)
        log.didUse(steps: allowed &- steps)
        throw error
      }
    }
    log.didUse(steps: allowed &- steps &+ (limits.countsAllWork ? stepsPerElement : bins.count))
    // Many short filters take long together, and no evaluation is so long that it stops.
    log.pace.spend((allowed &- steps &+ stepsPerElement) / 64)
    return any
  }

  private func tooManySteps(_ place: Int, _ log: UndoLog) -> FeedError {
    limits.tooManySteps(
      ofRequest: log.stepsLeft < limits.maxQuerySteps,
      inRequest: "the filters of \(feed) take too many steps over the elements of one request; push fewer at a time, "
        + "write simpler filters",
      inElement: "the filters of \(feed) take too many steps over element \(place); push a smaller one, write simpler "
        + "filters")
  }

  /// Updates the rows of an element according to the verdicts, bin by bin.
  ///
  /// If the element left exactly one bin and entered exactly one other, the row is paired in `moves`.
  func placeRows(_ handle: UInt32, _ text: ElementText, _ log: UndoLog) {
    if deferred != nil { return noteVerdicts(handle, text) }
    shownElement = text
    var (left, arrived) = (0, 0)
    var move = Move(deleted: 0, added: 0)
    for bin in bins.indices {
      let row = bins[bin].section.rows.row(of: handle)
      switch (row, verdicts[bin]) {
      case (nil, true):
        list(arrive(handle, text, bin, log))
        arrived &+= 1
        move.added = UInt32(max(0, step.added.count &- 1))
      case (let row?, true): list(stay(handle, text, bin, row, log))
      case (let row?, false):
        list(.deleted(IndexPath(section: UInt32(bin), row: UInt32(row))))
        left &+= 1
        move.deleted = UInt32(max(0, step.deleted.count &- 1))
        removeRow(section: bin, at: row, log)
      case (nil, false): break
      }
    }
    if left == 1 && arrived == 1 { pair(move) }
  }

  /// Lists a row of the current step. The first one needs no lists.
  @inline(__always)
  private func list(_ change: ChangeOfOne) {
    if row == nil && step.isEmpty { row = change } else { listAnother(change) }
  }

  @inline(never)
  private func listAnother(_ change: ChangeOfOne) {
    if let first = row { step.append(first) }
    row = nil
    step.append(change)
  }

  /// Pairs the row of the bin that the element left and the row of the bin that it entered.
  private func pair(_ move: Move) {
    if step.size == 2, let from = step.deleted.first, let to = step.added.first {
      step.removeAll(keepingCapacity: true)
      row = .moved(from: from, to: to)
    } else {
      step.moves.insert(move, at: step.moves.firstIndex { $0.deleted > move.deleted } ?? step.moves.count)
    }
  }

  private func arrive(_ handle: UInt32, _ text: ElementText, _ bin: Int, _ log: UndoLog) -> ChangeOfOne {
    let (gap, key) = keyed?.preparedPlace ?? place(text.keys, in: bin)
    insertRow(handle, section: bin, into: gap, key: key, log)
    return .added(IndexPath(section: UInt32(bin), row: UInt32(gap.row)))
  }

  private func stay(_ handle: UInt32, _ text: ElementText, _ bin: Int, _ row: Int, _ log: UndoLog) -> ChangeOfOne {
    let path = IndexPath(section: UInt32(bin), row: UInt32(row))
    guard bins[bin].order >= 0, keyDiffers(handle, text, bin) else { return .updated(path) }
    let (gap, key) = keyed?.preparedPlace ?? place(text.keys, in: bin)
    let target = gap.row > row ? gap.row &- 1 : gap.row
    if target == row {
      rekeyRow(section: bin, at: row, handle: handle, key: key, log)
      return .updated(path)
    }
    removeRow(section: bin, at: row, log)
    insertRow(handle, section: bin, at: target, key: key, log)
    return .moved(from: path, to: IndexPath(section: path.section, row: UInt32(target)))
  }

  func keyDiffers(_ handle: UInt32, _ text: ElementText, _ bin: Int) -> Bool {
    let order = bins[bin].order
    let before = SortOrder.key(order, in: elements.text(of: handle).keys)
    return SortOrder.compare(before, SortOrder.key(order, in: text.keys)) != 0
  }

  /// The place for these sort keys in a bin: before the first row that sorts after them; at the end if it is unsorted.
  private func place(_ keys: UnsafeRawBufferPointer, in bin: Int) -> (gap: PositionTree.Gap, key: UInt64) {
    let rows = bins[bin].section.rows
    let order = bins[bin].order
    guard order >= 0 else { return (rows.gap(before: rows.count), 0) }
    let key = SortOrder.key(order, in: keys)
    let prefix = SortOrder.prefix(of: key)
    // No key is a prefix of another, so a key of at most eight bytes equals any other key with the same prefix.
    if key.count <= 8 { return (rows.gap(key: prefix) { _ in false }, prefix) }
    let gap = rows.gap(key: prefix) { other in
      SortOrder.isAfter(SortOrder.key(order, in: elements.text(of: other).keys), key)
    }
    return (gap, prefix)
  }
}
