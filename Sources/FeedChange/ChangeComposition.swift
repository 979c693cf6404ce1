/// Returns the change that has the effect of `first` followed by `second`.
///
/// A row added and then deleted is not listed. A row added and then updated is added, one updated and then deleted is
/// deleted, one moved twice is moved once, one moved and then deleted is deleted. A section added and then deleted is not
/// listed. A row deleted by `first` and added by `second` is in both lists, because positions do not tell that it is the
/// same element. A row that moved away and back is listed as a move: `Change.normalizingMoves()` removes it.
///
/// The empty change is the identity, and composition is associative. A row that moves through a section that is deleted later
/// keeps its pair if each change knows its rows of deleted sections; those of a history and of clients don't.
/// - Precondition: both changes are well formed and `second` fits the feed after `first` (`Change.validate(rowCounts:)`).
///
/// O(size of both changes), independent of the length of the feed.
public func compose(_ first: Change, _ second: Change) -> Change { compose(first, second, step: {}) }

/// Composes two changes, and calls `step` after about each thousand entries.
func compose(_ first: Change, _ second: Change, step: () -> Void) -> Change {
  if first.isEmpty { return second }
  if second.isEmpty { return first }
  if first.onlyUpdates && second.onlyUpdates { return Change(updated: mergeAscending(first.updated, second.updated)) }
  return ChangeComposer(first, second).composed(step)
}

/// Returns the ascending union of two ascending lists.
package func mergeAscending<Value: Comparable>(_ left: [Value], _ right: [Value]) -> [Value] {
  if left.isEmpty { return right }
  if right.isEmpty { return left }
  var merged: [Value] = []
  merged.reserveCapacity(left.count + right.count)
  var i = 0
  var j = 0
  while i < left.count, j < right.count {
    if left[i] < right[j] {
      merged.append(left[i])
      i += 1
    } else {
      if left[i] == right[j] { i += 1 }
      merged.append(right[j])
      j += 1
    }
  }
  merged.append(contentsOf: left[i...])
  merged.append(contentsOf: right[j...])
  return merged
}

/// Composes a sequence of changes into one, incrementally.
///
/// It holds partial compositions in order of arrival. Invariant: each is at least twice as large as the next one. So an
/// entry takes part in O(log n) compositions, and a large change is not copied for each small change that follows it.
///
///     var accumulator = ChangeAccumulator()
///     for change in history { accumulator.add(change) }
///     let change = accumulator.finish().normalizingMoves()
public struct ChangeAccumulator: Sendable {
  private var parts: [Change] = []

  /// Creates an accumulator whose composition is the empty change.
  public init() {}

  /// Whether the composition is known to be empty. It can be empty although this is false.
  public var isEmpty: Bool { parts.isEmpty }
  /// An upper bound of the size of the composition. O(log n).
  public var size: Int { parts.reduce(0) { $0 + $1.size } }

  /// Adds a change that follows the one added last. Amortised O(log n) for each entry of `change`, and O(1) if only rows
  /// are added, each behind the ones before.
  /// - Parameter step: called after about each thousand composed entries.
  public mutating func add(_ change: Change, step: () -> Void = {}) {
    if change.isEmpty { return }
    if parts.isEmpty || !parts[parts.count - 1].append(additions: change) { parts.append(change) }
    while parts.count > 1, parts[parts.count - 2].size < 2 * parts[parts.count - 1].size {
      let last = parts.removeLast()
      let composition = compose(parts.removeLast(), last, step: step)
      if !composition.isEmpty { parts.append(composition) }
    }
    checkInvariants()
  }

  /// Returns the composition of the changes added since the start or the last `finish()`. More may be added. O(size).
  public mutating func composed(step: () -> Void = {}) -> Change {
    guard var result = parts.popLast() else { return .empty }
    while let previous = parts.popLast() { result = compose(previous, result, step: step) }
    if !result.isEmpty { parts.append(result) }
    return result
  }

  /// Returns the composition of the changes added since the start or the last `finish()`, and starts over. O(size).
  public mutating func finish(step: () -> Void = {}) -> Change {
    let result = composed(step: step)
    parts.removeAll(keepingCapacity: true)
    return result
  }
}

extension Change {
  /// Composes with a change that only adds rows behind those that this one adds, if this one lists nothing else. Returns
  /// whether it did.
  fileprivate mutating func append(additions change: Change) -> Bool {
    guard onlyAddsRows, change.onlyAddsRows, let last = added.last, let first = change.added.first, last < first else {
      return false
    }
    added.append(contentsOf: change.added)
    return true
  }

  private var onlyAddsRows: Bool { !added.isEmpty && size == added.count }
  /// Whether the change knows rows of which it lists the new place.
  fileprivate var hasPairs: Bool { !moves.isEmpty || !transfers.isEmpty }
}

extension ChangeAccumulator {
  /// Checks in debug builds that each part is at least twice as large as the next one. O(parts), which is O(log n).
  func checkInvariants() {
    #if CHECK_INVARIANTS
      for (part, next) in zip(parts, parts.dropFirst()) { precondition(part.size >= 2 * next.size) }
      precondition(parts.allSatisfy { !$0.isEmpty })
    #endif
  }
}

/// The implementation of `compose(_:_:)`. The state between the two changes is called the middle.
struct ChangeComposer {
  /// The value for "no index" in the tables below.
  private static let none = UInt32.max

  private let first: Change
  private let second: Change
  private var result = Change()

  /// For each entry of `second.deleted`, the index of the entry of `first.added` that it removes, or `none`.
  private var undone: [UInt32] = []
  /// For each entry of `first.deleted` and `second.deleted`, its index in the result's `deleted`, or `none`.
  private var deletedOfFirst: [UInt32] = []
  private var deletedOfSecond: [UInt32] = []
  /// For each entry of `first.added` and `second.added`, its index in the result's `added`, or `none`.
  private var addedOfFirst: [UInt32] = []
  private var addedOfSecond: [UInt32] = []
  /// The rows of `first.added` that `second` leaves in place, in coordinates after `second`, ascending.
  private var carried: [IndexPath] = []
  /// For each entry of `carried`, its index in the result's `added`.
  private var carriedPlaces: [UInt32] = []
  /// The indexes in the result's `added` of rows that `first` added and `second` updated.
  private var updatedLater: Set<UInt32> = []

  init(_ first: Change, _ second: Change) {
    self.first = first
    self.second = second
  }

  consuming func composed(_ step: () -> Void) -> Change {
    composeSections()
    composeDeleted(step)
    composeAdded(step)
    composeUpdated(step)
    if first.hasPairs || second.hasPairs { composeMoves(step) }
    return result
  }

  private mutating func composeSections() {
    if first.hasSameSections && second.hasSameSections { return }
    let addedByFirst = first.sectionsAdded.map(\.at)
    let addedBySecond = second.sectionsAdded.map(\.at)
    var backward = SectionMap(removed: addedByFirst, inserted: first.sectionsDeleted)
    result.sectionsDeleted = mergeAscending(
      first.sectionsDeleted, second.sectionsDeleted.compactMap { backward.map($0) })

    if first.sectionsAdded.isEmpty {
      result.sectionsAdded = second.sectionsAdded
      return
    }
    var forward = SectionMap(removed: second.sectionsDeleted, inserted: addedBySecond)
    var next = 0
    for addition in first.sectionsAdded {
      guard let at = forward.map(addition.at) else { continue }
      while next < second.sectionsAdded.count, addedBySecond[next] < at {
        result.sectionsAdded.append(second.sectionsAdded[next])
        next += 1
      }
      result.sectionsAdded.append(addition.moved(to: at))
    }
    result.sectionsAdded.append(contentsOf: second.sectionsAdded[next...])
  }

  /// Merges `first.deleted` with those entries of `second.deleted` that existed before `first`, without rows of deleted
  /// sections.
  private mutating func composeDeleted(_ step: () -> Void) {
    deletedOfFirst = [UInt32](repeating: Self.none, count: first.deleted.count)
    deletedOfSecond = [UInt32](repeating: Self.none, count: second.deleted.count)
    undone = deletedOfSecond
    result.deleted.reserveCapacity(first.deleted.count + second.deleted.count)
    var next = 0
    var goneSection = 0
    func appendOfFirst(before limit: IndexPath?, _ composer: inout ChangeComposer) {
      let gone = composer.result.sectionsDeleted
      while next < composer.first.deleted.count {
        let path = composer.first.deleted[next]
        if let limit, path >= limit { return }
        while goneSection < gone.count, gone[goneSection] < path.section { goneSection += 1 }
        if goneSection == gone.count || gone[goneSection] != path.section {
          composer.deletedOfFirst[next] = UInt32(truncatingIfNeeded: composer.result.deleted.count)
          composer.result.deleted.append(path)
        }
        next += 1
        if next & 1023 == 0 { step() }
      }
    }
    var backward = ChangeMap(backward: first)
    for (place, path) in second.deleted.enumerated() {
      if place & 1023 == 1023 { step() }
      switch backward.map(path) {
      case .at(let before):
        appendOfFirst(before: before, &self)
        deletedOfSecond[place] = UInt32(truncatingIfNeeded: result.deleted.count)
        result.deleted.append(before)
      case .listed(let entry): undone[place] = UInt32(truncatingIfNeeded: entry)
      case .sectionGone: break
      }
    }
    appendOfFirst(before: nil, &self)
  }

  /// Merges `second.added` with those entries of `first.added` that `second` leaves in place.
  private mutating func composeAdded(_ step: () -> Void) {
    addedOfFirst = [UInt32](repeating: Self.none, count: first.added.count)
    addedOfSecond = [UInt32](repeating: Self.none, count: second.added.count)
    carried.reserveCapacity(first.added.count)
    result.added.reserveCapacity(first.added.count + second.added.count)
    var next = 0
    func appendOfSecond(before limit: IndexPath?, _ composer: inout ChangeComposer) {
      while next < composer.second.added.count {
        let path = composer.second.added[next]
        if let limit, path >= limit { return }
        composer.addedOfSecond[next] = UInt32(truncatingIfNeeded: composer.result.added.count)
        composer.result.added.append(path)
        next += 1
        if next & 1023 == 0 { step() }
      }
    }
    var forward = ChangeMap(forward: second)
    for (place, path) in first.added.enumerated() {
      if place & 1023 == 1023 { step() }
      guard case .at(let after) = forward.map(path) else { continue }
      appendOfSecond(before: after, &self)
      addedOfFirst[place] = UInt32(truncatingIfNeeded: result.added.count)
      result.added.append(after)
      carried.append(after)
      carriedPlaces.append(addedOfFirst[place])
    }
    appendOfSecond(before: nil, &self)
  }

  /// Merges the updates of both changes, without the rows that `first` added.
  private mutating func composeUpdated(_ step: () -> Void) {
    var forward = ChangeMap(forward: second)
    var entries = 0
    let ofFirst = first.updated.compactMap { path -> IndexPath? in
      entries += 1
      if entries & 1023 == 0 { step() }
      guard case .at(let after) = forward.map(path) else { return nil }
      return after
    }
    var ofSecond = second.updated
    if !carried.isEmpty {
      var next = 0
      ofSecond.removeAll { path in
        entries += 1
        if entries & 1023 == 0 { step() }
        while next < carried.count, carried[next] < path { next += 1 }
        guard next < carried.count, carried[next] == path else { return false }
        updatedLater.insert(carriedPlaces[next])
        return true
      }
    }
    result.updated = mergeAscending(ofFirst, ofSecond)
  }

  /// The target of a row that moves: its index in the result's `added`, and whether it has the same element there.
  private struct Target {
    static let nowhere = Target(bits: .max)
    private let bits: UInt32

    private init(bits: UInt32) { self.bits = bits }

    init(_ added: UInt32, keepsElement: Bool) {
      self = added == none ? .nowhere : Target(bits: added << 1 | (keepsElement ? 1 : 0))
    }

    var isNowhere: Bool { bits == .max }
    var added: UInt32 { bits >> 1 }
    var keepsElement: Bool { bits & 1 == 1 }
    func keepingElement(_ keeps: Bool) -> Target { keeps || isNowhere ? self : Target(bits: bits & ~1) }
  }

  /// Joins the moves and transfers of both changes by the indexes found above. A pair is dropped if the row is added nowhere,
  /// and is a transfer if its row before is in a deleted section.
  private mutating func composeMoves(_ step: () -> Void) {
    let updatedFirst = updatedBefore(second.deleted)
    var secondMove = [Target](repeating: .nowhere, count: second.deleted.count)
    for (place, move) in second.moves.enumerated() {
      if place & 1023 == 1023 { step() }
      let keeps = move.keepsElement && (updatedFirst.isEmpty || !updatedFirst.contains(move.deleted))
      secondMove[Int(move.deleted)] = Target(addedOfSecond[Int(move.added)], keepsElement: keeps)
    }

    var targetOfAdded = addedOfFirst.map {
      Target($0, keepsElement: updatedLater.isEmpty || !updatedLater.contains($0))
    }
    var target = [Target](repeating: .nowhere, count: result.deleted.count)
    for place in second.deleted.indices where !secondMove[place].isNowhere {
      if undone[place] != Self.none {
        targetOfAdded[Int(undone[place])] = secondMove[place]
      } else if deletedOfSecond[place] != Self.none {
        target[Int(deletedOfSecond[place])] = secondMove[place]
      }
    }
    if !second.transfers.isEmpty { composeTransfers(&targetOfAdded, step) }
    for (place, move) in first.moves.enumerated() {
      if place & 1023 == 1023 { step() }
      let targetOfMove = targetOfAdded[Int(move.added)].keepingElement(move.keepsElement)
      if deletedOfFirst[Int(move.deleted)] != Self.none {
        target[Int(deletedOfFirst[Int(move.deleted)])] = targetOfMove
      } else {
        transfer(first.deleted[Int(move.deleted)], to: targetOfMove)
      }
    }
    for (place, known) in first.transfers.enumerated() {
      if place & 1023 == 1023 { step() }
      transfer(known.from, to: targetOfAdded[Int(known.added)].keepingElement(known.keepsElement))
    }
    result.transfers.sort { $0.from < $1.from }
    result.moves.reserveCapacity(first.moves.count + second.moves.count)
    for (deleted, target) in target.enumerated() where !target.isNowhere {
      result.moves.append(
        Move(deleted: UInt32(truncatingIfNeeded: deleted), added: target.added, keepsElement: target.keepsElement))
    }
  }

  /// Joins the transfers of the second change: to the rows that the first one added, or else as transfers of the result.
  private mutating func composeTransfers(_ targetOfAdded: inout [Target], _ step: () -> Void) {
    let updatedFirst = updatedBefore(second.transfers.lazy.map(\.from))
    var backward = ChangeMap(backward: first)
    for (place, known) in second.transfers.enumerated() {
      if place & 1023 == 1023 { step() }
      let keeps = known.keepsElement && !updatedFirst.contains(UInt32(truncatingIfNeeded: place))
      let target = Target(addedOfSecond[Int(known.added)], keepsElement: keeps)
      switch backward.map(known.from) {
      case .at(let before): transfer(before, to: target)
      case .listed(let entry): targetOfAdded[entry] = target
      case .sectionGone: break
      }
    }
  }

  private mutating func transfer(_ from: IndexPath, to target: Target) {
    if target.isNowhere { return }
    result.transfers.append(Transfer(from: from, added: target.added, keepsElement: target.keepsElement))
  }

  /// The indexes of rows, in ascending order before `second`, that `first` updated.
  private func updatedBefore(_ paths: some Sequence<IndexPath>) -> Set<UInt32> {
    var result: Set<UInt32> = []
    var next = 0
    for (place, path) in paths.enumerated() {
      while next < first.updated.count, first.updated[next] < path { next += 1 }
      if next == first.updated.count { break }
      if first.updated[next] == path { result.insert(UInt32(truncatingIfNeeded: place)) }
    }
    return result
  }
}
