import FeedChange
import FeedJSON

/// The rows of a source that a view with a filter or a sort shows, in the order of the view, before the window.
///
/// Every row of the source has a handle. Invariant: `all` has the handles of all rows of the source in flattened order,
/// as of the last change that was followed; `kept` has those that the filter accepts, ascending by sort key, then by
/// order in `all`; `texts` has the element of each row by handle, retained, and `codes` the type.
///
/// Memory: about 40 bytes for each row of the source. Only the engine's thread may use it.
final class ViewIndex {
  private struct Arrival {
    let handle: UInt32
    /// The row in `all` when all rows of the change are there.
    let row: Int
    let prefix: UInt64
    let isLong: Bool
    /// Whether the row was shown before with the same element.
    let keepsElement: Bool
  }

  let plan: ViewPlan
  private let all = PositionTree(keyed: false)
  private let kept = PositionTree(keyed: true)
  private var texts: [ElementText] = []
  private var textBytes = 0
  /// The types of the rows by handle; empty as long as each row has the type of its element.
  private var codes: [TypeTable.Code] = []
  private var free: [UInt32] = []
  private let types = TypeTable()
  private let judge: ViewJudge
  private let discarded: DiscardedElements
  /// A second judge, for the keys of rows that are already in the index.
  private let other: ViewJudge

  /// Evaluates and sorts all rows of the source. O(n log n).
  init(_ plan: ViewPlan, limits: Limits, _ pace: Pace, _ discarded: DiscardedElements) {
    (self.plan, self.discarded) = (plan, discarded)
    judge = ViewJudge(plan.definition, limits: limits)
    other = ViewJudge(plan.definition, limits: limits)
    let count = plan.source.count
    var entries = ViewEntries(most: count)
    texts.reserveCapacity(count)
    all.reserve(handles: count)
    plan.source.forEachRow { row in
      let handle = add(row)
      all.insert(handle, at: all.count)
      if judge.accepts(row.element, pace) { entries.append(handle, judge) }
    }
    let sorted = entries.sorted(pace)
    if sorted.count > count / 2 { kept.reserve(handles: count) }
    for (handle, prefix) in sorted {
      kept.insert(handle, at: kept.count, key: prefix)
      if handle & 15 == 0 { pace.spend() }
    }
  }

  deinit {
    var isUsed = [Bool](repeating: true, count: texts.count)
    for handle in free { isUsed[Int(handle)] = false }
    var next = 0
    let release = { [texts, isUsed] (count: Int) in
      let end = count < texts.count - next ? next + count : texts.count
      for handle in next..<end where isUsed[handle] { texts[handle].release() }
      next = end
      return end == texts.count
    }
    if texts.count >= DiscardedElements.many { discarded.add(release) } else { _ = release(.max) }
  }

  /// Its view gives the index up. If snapshots still keep it, they are charged for it.
  func abandon() {
    let lists =
      texts.capacity * MemoryLayout<ElementText>.stride + codes.capacity * MemoryLayout<TypeTable.Code>.stride
      + free.capacity * MemoryLayout<UInt32>.stride
    AbandonedRows.charge(textBytes + lists + all.byteCount, for: CollectionOfOne(kept))
  }

  /// The number of rows that the filter accepts.
  var count: Int { kept.count }
  func element(at index: Int) -> ElementText { texts[Int(kept[index])] }

  func type(at index: Int) -> UnsafeRawBufferPointer {
    let handle = kept[index]
    return types.type(code(of: handle), of: texts[Int(handle)])
  }

  /// The flattened row of the source that is shown at `index`. O(log n).
  func sourceRow(at index: Int) -> Int {
    guard let row = all.row(of: kept[index]) else { preconditionFailure("a row of the view is no row of the source") }
    return row
  }

  /// Returns a snapshot of the elements of a range, read while the index changes; nil if rows have types of their own.
  func makeSnapshot(of range: Range<Int>) -> RowSnapshot? {
    types.isEmpty ? kept.makeSnapshot(of: range, ownedBy: self) { [unowned self] in texts[Int($0)] } : nil
  }

  /// Follows a change of the source, which has its new rows. Adds that of the accepted rows to the empty `result`.
  /// - Parameter change: a change of one section: the rows in flattened order.
  ///
  /// O(m log n) for m listed rows. The change of one element allocates nothing.
  func follow(_ change: borrowing Change, _ pace: Pace, into result: inout Change) {
    if change.updated.count == 1, change.onlyUpdates {
      follow(updateOf: Int(change.updated[0].row), pace, into: &result)
    } else {
      result = followAll(change, pace)
    }
    #if CHECK_INVARIANTS
      if all.count <= 64 { checkInvariants() }
    #endif
  }

  private func follow(updateOf row: Int, _ pace: Pace, into result: inout Change) {
    let handle = all[row]
    let (known, arrival, stays, differs) = rejudge(handle, at: row, pace)
    if !stays, let known { kept.remove(at: known) }
    let place = stays ? known : arrival.map { insert($0, pace) }
    if let known, known == place {
      if differs { result.updated.append(IndexPath(section: 0, row: UInt32(known))) }
      return
    }
    if let known { result.deleted.append(IndexPath(section: 0, row: UInt32(known))) }
    guard let place else { return }
    result.added.append(IndexPath(section: 0, row: UInt32(place)))
    if known != nil { result.moves.append(Move(deleted: 0, added: 0, keepsElement: !differs)) }
  }

  private func followAll(_ change: borrowing Change, _ pace: Pace) -> Change {
    var handles: [UInt32] = []
    handles.reserveCapacity(change.deleted.count)
    for path in change.deleted {
      handles.append(all[Int(path.row)])
      if handles.count & 15 == 0 { pace.spend() }
    }
    var origin = [Int](repeating: -1, count: change.added.count)
    for move in change.moves { origin[Int(move.added)] = Int(move.deleted) }
    var isStaying = [Bool](repeating: false, count: handles.count)
    for move in change.moves { isStaying[Int(move.deleted)] = true }
    for path in change.deleted.reversed() {
      all.remove(at: Int(path.row))
      pace.spend()
    }
    var arrivals: [Arrival] = []
    var leaving: [(row: Int, handle: UInt32)] = []
    var updated: [UInt32] = []
    for (place, handle) in handles.enumerated() {
      if let row = kept.row(of: handle) { leaving.append((row, handle)) }
      if place & 15 == 0 { pace.spend() }
    }
    for (place, path) in change.added.enumerated() {
      let row = plan.source.row(atFlat: Int(path.row))
      let isMoved = origin[place] >= 0
      let handle = isMoved ? handles[origin[place]] : add(row)
      all.insert(handle, at: Int(path.row))
      let isEqual = isMoved && !exchange(handle, row)
      if isEqual ? wasAccepted(handle, pace) : judge.accepts(row.element, pace) {
        arrivals.append(makeArrival(of: handle, at: Int(path.row), keepsElement: isEqual))
      }
    }
    for path in change.updated {
      let handle = all[Int(path.row)]
      let (known, arrival, stays, differs) = rejudge(handle, at: Int(path.row), pace)
      if stays {
        if differs { updated.append(handle) }
        continue
      }
      if let known { leaving.append((known, handle)) }
      if let arrival { arrivals.append(arrival) }
    }
    for (_, handle) in leaving {
      if let row = kept.row(of: handle) { kept.remove(at: row) }
      pace.spend()
    }
    for arrival in arrivals {
      insert(arrival, pace)
      pace.spend()
    }
    for (place, handle) in handles.enumerated() where !isStaying[place] { release(handle) }
    let change = makeChange(&leaving, arrivals, updated, pace)
    return change.moves.isEmpty ? change : change.normalizingMoves { pace.didCompareMoves() }
  }

  /// Whether the filter accepted a row that only moves. If so, its sort key is in `judge`.
  private func wasAccepted(_ handle: UInt32, _ pace: Pace) -> Bool {
    pace.spend(onText: texts[Int(handle)].text)
    guard kept.contains(handle) else { return false }
    judge.makeKey(texts[Int(handle)])
    return true
  }

  /// Evaluates the filter again for a row whose element may have changed, and exchanges the element.
  ///
  /// Returns the row's place if it is shown; its arrival if it is accepted; whether it stays at its place, because its key
  /// is the same; and whether its element differs.
  private func rejudge(
    _ handle: UInt32, at place: Int, _ pace: Pace
  ) -> (known: Int?, arrival: Arrival?, stays: Bool, differs: Bool) {
    let row = plan.source.row(atFlat: place)
    let known = kept.row(of: handle)
    let isAccepted = judge.accepts(row.element, pace)
    let stays = isAccepted && known != nil && hasSameKey(handle)
    let differs = exchange(handle, row)
    guard isAccepted else { return (known, nil, stays, differs) }
    return (known, makeArrival(of: handle, at: place, keepsElement: known != nil && !differs), stays, differs)
  }

  /// The arrival of the row that `judge` accepted last.
  private func makeArrival(of handle: UInt32, at row: Int, keepsElement: Bool) -> Arrival {
    Arrival(handle: handle, row: row, prefix: judge.prefix, isLong: judge.isLong, keepsElement: keepsElement)
  }

  /// Whether the key in `judge` equals that of a shown row whose element was not exchanged yet.
  private func hasSameKey(_ handle: UInt32) -> Bool {
    guard kept.key(of: handle) == judge.prefix else { return false }
    if !judge.isLong { return true }
    other.makeKey(texts[Int(handle)])
    return SortOrder.compare(other.key, judge.key) == 0
  }

  /// Inserts an accepted row and returns its place. Rows that leave are gone. O(log n), O(log² n) among equal keys.
  @discardableResult
  private func insert(_ arrival: Arrival, _ pace: Pace) -> Int {
    if arrival.isLong { judge.makeKey(texts[Int(arrival.handle)]) }
    assert(all.row(of: arrival.handle) == arrival.row, "the row is elsewhere in the source")
    let row = kept.upperBound(key: arrival.prefix) { item in
      if arrival.isLong {
        pace.spend(2, onText: texts[Int(item)].text)
        other.makeKey(texts[Int(item)])
        let order = SortOrder.compare(other.key, judge.key)
        if order != 0 { return order > 0 }
      }
      return all.isItem(item, after: arrival.row)
    }
    kept.insert(arrival.handle, at: row, key: arrival.prefix)
    return row
  }

  private func makeChange(
    _ leaving: inout [(row: Int, handle: UInt32)], _ arrivals: [Arrival], _ updated: [UInt32], _ pace: Pace
  ) -> Change {
    var change = Change()
    if leaving.count > 1 { leaving.sort(pace) { $0.row < $1.row } }
    change.deleted = leaving.map { IndexPath(section: 0, row: UInt32($0.row)) }
    var entering: [(row: Int, arrival: Arrival)] = []
    entering.reserveCapacity(arrivals.count)
    for arrival in arrivals {
      entering.append((kept.row(of: arrival.handle) ?? 0, arrival))
      if entering.count & 15 == 0 { pace.spend() }
    }
    if entering.count > 1 { entering.sort(pace) { $0.row < $1.row } }
    change.added = entering.map { IndexPath(section: 0, row: UInt32($0.row)) }
    for handle in updated {
      change.updated.append(IndexPath(section: 0, row: UInt32(kept.row(of: handle) ?? 0)))
      if change.updated.count & 15 == 0 { pace.spend() }
    }
    if updated.count > 1 { change.updated.sort(pace, by: <) }
    if leaving.isEmpty || entering.isEmpty { return change }
    var places = [UInt32: Int](minimumCapacity: entering.count)
    for (place, entry) in entering.enumerated() {
      places[entry.arrival.handle] = place
      if place & 15 == 0 { pace.spend() }
    }
    for (place, entry) in leaving.enumerated() {
      if place & 15 == 0 { pace.spend() }
      guard let target = places[entry.handle] else { continue }
      change.moves.append(
        Move(deleted: UInt32(place), added: UInt32(target), keepsElement: entering[target].arrival.keepsElement))
    }
    return change
  }

  // MARK: Elements and types

  private func code(of handle: UInt32) -> TypeTable.Code { codes.isEmpty ? TypeTable.own : codes[Int(handle)] }

  private func setCode(_ code: TypeTable.Code, of handle: UInt32) {
    if codes.isEmpty && code == TypeTable.own { return }
    if codes.count < texts.count { codes += repeatElement(TypeTable.own, count: texts.count - codes.count) }
    codes[Int(handle)] = code
  }

  private func add(_ row: Row) -> UInt32 {
    row.element.retain()
    textBytes &+= row.element.footprint
    let handle = free.popLast() ?? UInt32(texts.count)
    if handle == texts.count { texts.append(row.element) } else { texts[Int(handle)] = row.element }
    setCode(types.code(of: row.type, in: row.element), of: handle)
    return handle
  }

  private func release(_ handle: UInt32) {
    textBytes &-= texts[Int(handle)].footprint
    texts[Int(handle)].release()
    free.append(handle)
  }

  /// Replaces the element of a row by the current one. Returns whether its text or type changed.
  private func exchange(_ handle: UInt32, _ row: Row) -> Bool {
    let (former, formerType) = (texts[Int(handle)], code(of: handle))
    let type = types.code(of: row.type, in: row.element)
    if former == row.element && formerType == type { return false }
    let differs =
      !RowStore.equal(former.text, row.element.text)
      || !RowStore.equal(types.type(formerType, of: former), row.type)
    kept.contentWillChange(of: handle)
    row.element.retain()
    textBytes &+= row.element.footprint &- former.footprint
    texts[Int(handle)] = row.element
    setCode(type, of: handle)
    former.release()
    return differs
  }

  // MARK: Invariants

  /// O(n log n).
  func checkInvariants() {
    let pace = Pace()
    precondition(all.count == plan.source.count, "the index has other rows than the source")
    precondition(all.count + free.count == texts.count, "an element is lost")
    let bytes = (0..<all.count).reduce(0) { $0 + texts[Int(all[$1])].footprint }
    precondition(bytes == textBytes, "the bytes of the elements are wrong")
    precondition(codes.isEmpty || codes.count == texts.count, "a type is lost")
    var last: (prefix: UInt64, key: [UInt8], row: Int)?
    var accepted = 0
    for row in 0..<all.count {
      let source = plan.source.row(atFlat: row)
      let (handle, text) = (all[row], texts[Int(all[row])])
      precondition(RowStore.equal(text.text, source.text), "a row has another element than the source")
      precondition(RowStore.equal(types.type(code(of: handle), of: text), source.type), "a row has another type")
      let isAccepted = other.accepts(text, pace)
      if isAccepted { accepted += 1 }
      precondition(isAccepted == kept.contains(all[row]), "the filter says otherwise")
    }
    precondition(accepted == kept.count, "the number of accepted rows is wrong")
    for index in 0..<kept.count {
      other.makeKey(element(at: index))
      let next = (prefix: other.prefix, key: Array(other.key), row: sourceRow(at: index))
      if let last {
        let isAscending = last.key == next.key ? last.row < next.row : last.key.lexicographicallyPrecedes(next.key)
        precondition(isAscending && last.prefix <= next.prefix, "rows of the view are out of order")
      }
      last = next
    }
  }
}

extension Feed {
  func forEachRow(_ body: (Row) -> Void) { for section in sections { section.forEach(in: 0..<section.count, body) } }
}
