import FeedChange
import FeedJSON

/// Replacing the content of a list without identities by a small change that is cheap to compute.
extension ListState {
  /// Executes `set` and leaves the change in `step`.
  ///
  /// The common prefix and suffix stay. Between them, equal rows stay as far as their order allows, and in each gap
  /// elements are replaced before rows are added or removed. O(n log n) for the rows between.
  /// - Throws: `limitExceeded`. The caller rolls back.
  func set(_ wanted: [JSONView], _ tick: () -> Instant, _ log: UndoLog) throws(FeedError) {
    let plan = plan(wanted, log.pace)
    var change = Change()
    change.updated.reserveCapacity(plan.replaced.count)
    for (old, new) in plan.replaced {
      let element = try compact(wanted[new], index: new)
      if try exchange(rows[old], element, moment: tick(), log) {
        change.updated.append(IndexPath(section: 0, row: UInt32(new)))
      }
      log.pace.spend(2)
    }
    for row in plan.removed.reversed() {
      remove(at: row, log)
      log.pace.spend()
    }
    for row in plan.added {
      try addRow(try compact(wanted[row], index: row), at: row, moment: tick(), log)
      log.pace.spend(2)
    }
    change.deleted = plan.removed.map(log.pace) { IndexPath(section: 0, row: UInt32($0)) }
    change.added = plan.added.map(log.pace) { IndexPath(section: 0, row: UInt32($0)) }
    step = change
  }

  /// Plans `set`: which rows stay, which get another element, and which are removed or added.
  private func plan(_ wanted: [JSONView], _ pace: Pace) -> ListPlan {
    let old = texts(pace)
    var start = 0
    while start < min(old.count, wanted.count), Self.equal(old[start], wanted[start].text) {
      start += 1
      if start & 31 == 0 { pace.spend() }
    }
    var end = 0
    while end < min(old.count, wanted.count) - start,
      Self.equal(old[old.count - 1 - end], wanted[wanted.count - 1 - end].text)
    {
      end += 1
      if end & 31 == 0 { pace.spend() }
    }
    var plan = ListPlan()
    var (oldNext, newNext) = (start, start)
    let kept = matches(old[start..<old.count - end], wanted[start..<wanted.count - end], pace)
    plan.reserve(min(old.count, wanted.count))
    for (oldRow, newRow) in kept {
      plan.fillGap(old: oldNext..<oldRow, new: newNext..<newRow, pace)
      (oldNext, newNext) = (oldRow + 1, newRow + 1)
    }
    plan.fillGap(old: oldNext..<old.count - end, new: newNext..<wanted.count - end, pace)
    return plan
  }

  private func texts(_ pace: Pace) -> [UnsafeRawBufferPointer] {
    var texts: [UnsafeRawBufferPointer] = []
    texts.reserveCapacity(rows.count)
    for row in 0..<rows.count {
      texts.append(elements.text(of: rows[row]).text)
      if row & 7 == 7 { pace.spend() }
    }
    return texts
  }

  /// Pairs of rows with equal elements, ascending on both sides. Of equal elements, the first ones are paired.
  private func matches(
    _ old: ArraySlice<UnsafeRawBufferPointer>, _ wanted: ArraySlice<JSONView>, _ pace: Pace
  ) -> [(old: Int, new: Int)] {
    if old.isEmpty || wanted.isEmpty { return [] }
    /// The next row with each text, and after each row the next one with the same text; -1 for none.
    var first = [Text: Int](minimumCapacity: old.count)
    var next = [Int](repeating: -1, count: old.count, pace)
    for row in old.indices.reversed() {
      if let later = first.updateValue(row, forKey: Text(bytes: old[row])) { next[row - old.startIndex] = later }
      if row & 3 == 3 { pace.spend() }
    }
    var pairs: [(old: Int, new: Int)] = []
    pairs.reserveCapacity(min(old.count, wanted.count))
    for row in wanted.indices {
      if row & 3 == 3 { pace.spend() }
      let text = Text(bytes: wanted[row].text)
      guard let match = first[text], match >= 0 else { continue }
      pairs.append((match, row))
      first[text] = next[match - old.startIndex]
    }
    return longestIncreasing(pairs.map(pace, \.old)) { pace.spend() }.map(pace) { pairs[$0] }
  }

  /// A text as a key of a dictionary. The bytes must outlive it.
  private struct Text: Hashable {
    let bytes: UnsafeRawBufferPointer

    static func == (a: Text, b: Text) -> Bool { ListState.equal(a.bytes, b.bytes) }
    func hash(into hasher: inout Hasher) { hasher.combine(bytes: bytes) }
  }
}

private struct ListPlan {
  /// Old rows that are removed, ascending.
  private(set) var removed: [Int] = []
  /// New rows that are added, ascending.
  private(set) var added: [Int] = []
  /// Old rows whose elements are replaced, and their new rows; both ascending.
  private(set) var replaced: [(old: Int, new: Int)] = []

  /// Makes room for so many replaced rows: an array that grows copies all of them at once.
  mutating func reserve(_ count: Int) { replaced.reserveCapacity(count) }

  mutating func fillGap(old: Range<Int>, new: Range<Int>, _ pace: Pace) {
    pace.spend()
    let common = min(old.count, new.count)
    for offset in 0..<common {
      replaced.append((old.lowerBound + offset, new.lowerBound + offset))
      if offset & 63 == 63 { pace.spend() }
    }
    removed.append(contentsOf: old.dropFirst(common), pace)
    added.append(contentsOf: new.dropFirst(common), pace)
  }
}

/// Replacing the content of an array with identities.
extension ListState {
  /// Executes `set` by identity and leaves the change in `step`. An element that stays keeps its row. As many of these
  /// rows as possible keep their place; the others move. O(n log n).
  /// - Throws: `noIdentity`, `duplicateIdentity` for a repeated identity, `limitExceeded`. The caller rolls back.
  func setByIdentity(_ wanted: [JSONView], _ tick: () -> Instant, _ log: UndoLog) throws(FeedError) {
    let pace = log.pace
    let known = try rowsByIdentity(of: wanted, pace)
    /// For each row, its new row; -1 if its element is removed.
    var places = [Int](repeating: -1, count: rows.count, pace)
    for (place, row) in known.enumerated() {
      if row >= 0 { places[row] = place }
      if place & 63 == 0 { pace.spend() }
    }
    step = .between(places, wanted.count, pace) { _ in true }
    var handles: [UInt32] = []
    handles.reserveCapacity(rows.count)
    rows.forEach(in: 0..<rows.count) { handle in
      handles.append(handle)
      if handles.count & 63 == 0 { pace.spend() }
    }
    for path in step.deleted.reversed() {
      let row = Int(path.row)
      removeRow(section: 0, at: row, log)
      if places[row] < 0 { removeElement(handles[row], log) }
      pace.spend()
    }
    /// For each entry of `added`, whether it shows another element than before.
    var isChanged = [Bool](repeating: false, count: step.added.count, pace)
    var next = 0
    for (row, given) in wanted.enumerated() {
      pace.spend(2, onText: given.text)
      identities?.makeRoom(pace)
      let element = try compact(given, index: row)
      _ = try identities?.find(identityOf: element, index: row)
      let moment = tick()
      let isAdded = next < step.added.count && step.added[next].row == row
      if isAdded { next += 1 }
      if known[row] < 0 {
        try addRow(element, at: row, moment: moment, log)
        continue
      }
      let handle = handles[known[row]]
      let differs = try exchange(handle, element, moment: moment, log)
      if isAdded {
        insertRow(handle, section: 0, at: row, key: 0, log)
        isChanged[next - 1] = differs
      } else if differs {
        step.updated.append(IndexPath(section: 0, row: UInt32(row)))
      }
    }
    step.markChanged(isChanged, pace)
  }

  /// The current row of the identity of each element; -1 for a new element.
  /// - Throws: `noIdentity`, or `duplicateIdentity` for a repeated identity.
  private func rowsByIdentity(of wanted: [JSONView], _ pace: Pace) throws(FeedError) -> [Int] {
    guard let identities else { return [] }
    var found: [Int] = []
    var hashes: [(hash: UInt32, place: UInt32)] = []
    found.reserveCapacity(wanted.count)
    hashes.reserveCapacity(wanted.count)
    var failure: FeedError?
    for (place, element) in wanted.enumerated() {
      do throws(FeedError) {
        let handle = try identities.find(identityOf: element, index: place)
        found.append(handle.flatMap { rows.row(of: $0) } ?? -1)
        hashes.append((identities.hashOfBytes, UInt32(place)))
      } catch {
        failure = error
        break
      }
      pace.spend(2, onText: element.text)
    }
    // The first element that is refused is named.
    if let place = try firstRepetition(in: wanted, &hashes, identities, pace) {
      throw identities.duplicate(wanted[place], index: place)
    }
    if let failure { throw failure }
    return found
  }

  /// The first element that has the identity of one before it; nil if there is none.
  ///
  /// A set of identities would be freed at once.
  /// - Parameter hashes: the hash of each identity with its place; left sorted.
  private func firstRepetition(
    in wanted: [JSONView], _ hashes: inout [(hash: UInt32, place: UInt32)], _ identities: ListIdentities, _ pace: Pace
  ) throws(FeedError) -> Int? {
    hashes.sort(pace) { $0.hash < $1.hash }
    var first: Int?
    var start = 0
    for next in hashes.indices {
      if next & 63 == 0 { pace.spend() }
      if hashes[next].hash != hashes[start].hash { start = next }
      // One repetition is enough: a list may have the same identity a million times.
      for other in start..<next where try isSame(Int(hashes[other].place), Int(hashes[next].place)) {
        first = min(first ?? .max, Int(hashes[next].place))
        break
      }
    }
    return first

    func isSame(_ one: Int, _ other: Int) throws(FeedError) -> Bool {
      _ = try identities.find(identityOf: wanted[one], index: one)
      let bytes = Array(identities.bytes)
      _ = try identities.find(identityOf: wanted[other], index: other)
      return identities.bytes.elementsEqual(bytes)
    }
  }
}
