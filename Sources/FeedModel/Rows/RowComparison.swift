import FeedChange
import FeedJSON

/// The change between two states of which all rows are known.
///
/// All rows are listed as deleted and added, those of both as moved. `normalizingMoves()` then keeps most of them.
extension Change {
  /// Returns the change between two states of a list.
  /// - Parameters:
  ///   - places: for each row before, its place after; negative if it is gone. No two are equal.
  ///   - keepsElement: whether the row at a place after shows the same element as before.
  ///
  /// O(n log n).
  static func between(_ places: [Int], _ count: Int, _ pace: Pace, keepsElement: (_ place: Int) -> Bool) -> Change {
    var change = Change()
    change.deleted.append(rows: places.count, of: 0, pace)
    change.added.append(rows: count, of: 0, pace)
    change.moves.reserveCapacity(min(places.count, count))
    for (row, place) in places.enumerated() {
      if row & 15 == 15 { pace.spend() }
      if place < 0 { continue }
      change.moves.append(Move(deleted: UInt32(row), added: UInt32(place), keepsElement: keepsElement(place)))
    }
    return change.normalizingMoves(inOrderAfter: true) { pace.didCompareMoves() }
  }

  /// Sets whether moved rows keep their elements, of a change that was made before the elements.
  /// - Parameter isChanged: for each entry of `added`, whether it shows another element than before.
  mutating func markChanged(_ isChanged: [Bool], _ pace: Pace) {
    for index in moves.indices {
      moves[index].keepsElement = !isChanged[Int(moves[index].added)]
      if index & 127 == 127 { pace.spend() }
    }
    for index in transfers.indices { transfers[index].keepsElement = !isChanged[Int(transfers[index].added)] }
  }
}

extension [IndexPath] {
  mutating func append(rows count: Int, of section: Int, _ pace: Pace) {
    if isEmpty { reserveCapacity(count) }
    for row in 0..<count {
      append(IndexPath(section: UInt32(section), row: UInt32(row)))
      if row & 255 == 255 { pace.spend() }
    }
  }
}

extension Change {
  /// Replaces the change by one that leads a list to the same rows and moves as few as possible, if that moves fewer.
  ///
  /// A change that moves the first three of four rows behind the last becomes one that moves the last row.
  /// - Parameter count: the number of rows before the change.
  /// - Precondition: the list is one section.
  ///
  /// O(size + m log m) for m moves.
  mutating func moveFewestRows(of count: Int, _ pace: Pace) {
    if moves.count < 2 { return }
    let search = FewestMoves(self, count, pace)
    let kept = search.findKept()
    if search.movedRows(kept) < moves.count { self = search.makeChange(kept) }
  }
}

/// Finds the rows of a change that must move, and makes the change in which only they do.
///
/// Runs of unlisted rows, between places where rows leave or enter, keep their order and are weighed as a whole.
private struct FewestMoves {
  /// A moved row, or a run of unlisted rows.
  private struct Item {
    let before, after: UInt64
    let weight: Int
    /// The index in `moves`; nil for a run.
    let move: Int?
    /// The number of unlisted rows before it.
    let start: Int
  }

  private let change: Change
  private let pace: Pace
  /// For each entry of `change.deleted` and `change.added`, the number of unlisted rows before it.
  private let gapsBefore, gapsAfter: [UInt32]
  /// All items in the order before the change.
  private let items: [Item]

  init(_ change: Change, _ count: Int, _ pace: Pace) {
    (self.change, self.pace) = (change, pace)
    (gapsBefore, gapsAfter) = (change.deleted.gaps(), change.added.gaps())
    var items: [Item] = []
    items.reserveCapacity(3 * change.moves.count + 1)
    var cuts: [Int] = []
    cuts.reserveCapacity(2 * change.moves.count + 2)
    cuts.append(0)
    for (index, move) in change.moves.enumerated() {
      let (from, to) = (Int(gapsBefore[Int(move.deleted)]), Int(gapsAfter[Int(move.added)]))
      items.append(
        Item(
          before: Self.order(from, move.deleted), after: Self.order(to, move.added), weight: 1, move: index, start: from
        ))
      cuts.append(from)
      cuts.append(to)
      if index & 15 == 15 { pace.spend() }
    }
    cuts.append(count - change.deleted.count)
    cuts.sort(pace, by: <)
    for (place, start) in cuts.dropLast().enumerated() {
      if place & 15 == 15 { pace.spend() }
      if cuts[place + 1] == start { continue }
      // A row that leaves or enters where the run starts is before it.
      let order = Self.order(start, .max)
      items.append(Item(before: order, after: order, weight: cuts[place + 1] - start, move: nil, start: start))
    }
    items.sort(pace) { $0.before < $1.before }
    self.items = items
  }

  private static func order(_ gap: Int, _ index: UInt32) -> UInt64 { UInt64(gap) << 32 | UInt64(index) }

  /// For each item, whether it stays: those of an increasing subsequence with the most rows.
  func findKept() -> [Bool] {
    var order = Array(items.indices)
    order.sort(pace) { items[$0].after < items[$1].after }
    var isKept = [Bool](repeating: false, count: items.count, pace)
    for place in heaviestIncreasing(order, weights: order.map(pace) { items[$0].weight }, pace) {
      isKept[order[place]] = true
    }
    return isKept
  }

  /// The number of rows that move if some items stay.
  func movedRows(_ isKept: [Bool]) -> Int { zip(items, isKept).reduce(0) { $0 + ($1.1 ? 0 : $1.0.weight) } }

  func makeChange(_ isKept: [Bool]) -> Change {
    var rows: [(from: IndexPath, to: IndexPath)] = []
    rows.reserveCapacity(change.moves.count)
    for (place, item) in items.enumerated() where item.move == nil && !isKept[place] {
      for gap in item.start..<item.start + item.weight {
        rows.append((Self.path(ofUnlisted: gap, gapsBefore), Self.path(ofUnlisted: gap, gapsAfter)))
        pace.spend()
      }
    }
    let moved = rows.map(pace, \.to)
    var result = change
    result.deleted = mergeAscending(change.deleted, rows.map(pace, \.from))
    result.added = mergeAscending(change.added, moved)
    result.updated.removeAll {
      pace.spend()
      return moved.place(of: $0) != nil
    }
    func move(_ from: IndexPath, _ to: IndexPath, keepsElement: Bool) -> Move {
      pace.spend()
      return Move(
        deleted: result.deleted.place(of: from) ?? 0, added: result.added.place(of: to) ?? 0, keepsElement: keepsElement
      )
    }
    var moves: [Move] = []
    moves.reserveCapacity(change.moves.count + rows.count)
    for known in change.moves {
      moves.append(
        move(change.deleted[Int(known.deleted)], change.added[Int(known.added)], keepsElement: known.keepsElement))
    }
    for row in rows { moves.append(move(row.from, row.to, keepsElement: change.updated.place(of: row.to) == nil)) }
    moves.sort(pace) { $0.deleted < $1.deleted }
    result.moves = moves
    // The moves of the rows that stay are now without effect.
    return result.normalizingMoves { pace.didCompareMoves() }
  }

  /// The path of an unlisted row, by the number of unlisted rows before it.
  private static func path(ofUnlisted row: Int, _ gaps: [UInt32]) -> IndexPath {
    IndexPath(section: 0, row: UInt32(row + gaps.countOfPrefix { Int($0) <= row }))
  }
}

/// Returns the indexes of a heaviest increasing subsequence of `values`, from its end. Of several, it is one whose end comes first.
/// - Parameters:
///   - values: the numbers from 0 on in any order, each once.
///   - weights: the weight of each, more than 0.
///
/// O(n log n).
func heaviestIncreasing(_ values: [Int], weights: [Int], _ pace: Pace) -> [Int] {
  /// For each entry, the weight of the heaviest subsequence that ends with it, and the entry before it there; -1 for none.
  var (sums, previous) = (
    [Int](repeating: 0, count: values.count, pace), [Int](repeating: -1, count: values.count, pace)
  )
  /// A Fenwick tree over the values: the best last entry of each of its ranges.
  var best = [Int](repeating: -1, count: values.count + 1, pace)
  var last = -1
  func isBetter(_ entry: Int, than other: Int) -> Bool { entry >= 0 && (other < 0 || sums[entry] > sums[other]) }
  for (entry, value) in values.enumerated() {
    pace.spend()
    var place = value
    while place > 0 {
      if isBetter(best[place], than: previous[entry]) { previous[entry] = best[place] }
      place &= place - 1
    }
    sums[entry] = weights[entry] + (previous[entry] < 0 ? 0 : sums[previous[entry]])
    place = value + 1
    while place < best.count {
      if isBetter(entry, than: best[place]) { best[place] = entry }
      place += place & -place
    }
    if isBetter(entry, than: last) { last = entry }
  }
  var chain: [Int] = []
  while last >= 0 {
    chain.append(last)
    last = previous[last]
    pace.spend()
  }
  return chain
}

/// Simplifying changes of several steps: what stays the same is not listed (`Protocol/README.md`, "The change").
extension RowStore {
  /// Reduces the composition of several steps to a minimal change.
  ///
  /// Composition knows only positions. This method knows the elements. A row that left and returned is paired as a move
  /// if its identity is the same, and so is one that left exactly one section and entered exactly one other. The move is
  /// dropped if it ends where it began. A row whose element equals the one before the steps is not updated; a moved one
  /// keeps its element, so that feeds in which it does not move don't list it. An array moves as few rows as possible.
  /// - Parameters:
  ///   - position: the position in the log where the steps begin. The sections have not changed since.
  ///   - known: the entries of the whole commit, if they were divided already.
  ///   - pairsRows: false if the path of the identity has changed, so that no row that left has returned.
  func simplify(
    _ change: Change, _ log: UndoLog, since position: UndoLog.Position, _ known: UndoLog.EntriesByStore? = nil,
    pairsRows: Bool = true
  ) -> Change {
    let own = Unmanaged<RowStore>.passUnretained(self)
    let entries = known.map { ($0[own.toOpaque()] ?? BlockList())[...] } ?? log.entries(of: own, since: position)
    var change = change
    if pairsRows { ReturnedRows(self, entries, log.pace).pair(in: &change) }
    let mayKeepElements = change.moves.contains { !$0.keepsElement }
    let versions = mayKeepElements || !change.updated.isEmpty ? versions(entries, log.pace, pairsRows: pairsRows) : nil
    if mayKeepElements, let versions {
      for (place, move) in change.moves.enumerated() where !move.keepsElement {
        if place & 15 == 15 { log.pace.spend() }
        let handle = handle(at: change.added[Int(move.added)])
        change.moves[place].keepsElement = isUnchanged(handle, since: versions)
      }
    }
    change = change.normalizingMoves { log.pace.didCompareMoves() }
    if let versions { dropUnchanged(from: &change.updated, versions, log.pace, handleOf: handle) }
    if movesFewest {
      assert(sections.count == 1, "a list has one section")
      change.moveFewestRows(of: sections[0].count + change.deleted.count - change.added.count, log.pace)
    }
    return change
  }

  /// Converts a simplified change of all rows as one section to one of the keyed sections, in `change`, which is empty.
  /// - Parameter isStep: whether the change is a single step, which needs no simplification.
  func divide(
    _ flat: borrowing Change, by keyed: KeyedSections, since scope: KeyedSections.Scope, _ log: UndoLog,
    _ position: UndoLog.Position, isStep: Bool, into change: inout Change
  ) {
    KeyedDivision(of: keyed, since: scope, isStep: isStep, log.pace).divide(flat, into: &change)
    if isStep || change.moves.isEmpty { return }
    change = change.normalizingMoves { log.pace.didCompareMoves() }
    if change.updated.isEmpty { return }
    let versions = versions(log.entries(of: .passUnretained(self), since: position), log.pace, pairsRows: true)
    dropUnchanged(from: &change.updated, versions, log.pace) { keyed.handle(at: $0) }
  }

  /// The element that a path shows. O(log n).
  func handle(at path: IndexPath) -> UInt32 { sections[Int(path.section)].rows[Int(path.row)] }

  /// Removes rows from `updated` whose element after all steps equals the one before them.
  private func dropUnchanged(
    from updated: inout [IndexPath], _ versions: VersionsBefore, _ pace: Pace, handleOf: (IndexPath) -> UInt32
  ) {
    updated.removeAll { path in
      pace.spend()
      return isUnchanged(handleOf(path), since: versions)
    }
  }

  /// Whether an element equals the one before the steps.
  private func isUnchanged(_ handle: UInt32, since versions: VersionsBefore) -> Bool {
    // An existing element that was not exchanged is unchanged: its row only moved.
    guard let first = versions.originals[handle] else { return !versions.added.contains(handle) }
    let now = elements.text(of: handle)
    return Self.equal(first.text, now.text) && Self.equal(first.type, now.type)
  }

  /// The versions of elements before some entries, by their current handles; and the elements that the entries added.
  private struct VersionsBefore {
    var originals: [UInt32: ElementText]
    var added: Set<UInt32>
  }

  private func versions(_ entries: Slice<BlockList<UndoLog.Entry>>, _ pace: Pace, pairsRows: Bool) -> VersionsBefore {
    var (exchanges, additions) = (0, 0)
    for (place, entry) in entries.enumerated() {
      if place & 63 == 63 { pace.spend() }
      if entry.step == .exchangedText { exchanges += 1 }
      if entry.step == .addedElement { additions += 1 }
    }
    // With their capacity from the beginning, since growing moves everything at once.
    var originals = [UInt32: ElementText](minimumCapacity: exchanges)
    var added = Set<UInt32>(minimumCapacity: additions)
    if additions > 0 {
      for (place, entry) in entries.enumerated() {
        if place & 15 == 15 { pace.spend() }
        if entry.step == .addedElement { added.insert(entry.handle) }
      }
    }
    for (place, entry) in entries.enumerated() {
      if place & 15 == 15 { pace.spend() }
      // What an added element had before an exchange is younger than the entries.
      guard entry.step == .exchangedText, originals[entry.handle] == nil, !added.contains(entry.handle)
      else { continue }
      originals[entry.handle] = ElementText(bitPattern: entry.text)
    }
    guard pairsRows else { return VersionsBefore(originals: originals, added: added) }
    for (place, entry) in entries.enumerated() {
      if place & 3 == 3 { pace.spend() }
      // Only the first removal of an identity refers to the version before the entries.
      guard entry.step == .removedElement, !added.contains(entry.handle), let now = successor(of: entry.handle)
      else { continue }
      originals[now] = originals[entry.handle] ?? elements.text(of: entry.handle)
    }
    return VersionsBefore(originals: originals, added: added)
  }
}
