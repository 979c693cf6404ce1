/// The one change that does what `first` and then `second` do: the before-coordinates are those of `first`, the
/// after-coordinates those of `second`.
///
/// Added then deleted vanishes, added then updated is added, updated then deleted is deleted, moved and moved again is one
/// move, moved then deleted is a plain delete; a section that came and went is not mentioned. A row deleted by `first` and
/// added by `second` stays both, since positions do not tell that it is the same element.
///
/// The empty change is the identity. The composition is associative, except that a pair of `moves` (optional by nature) can be
/// missing when a row passed through a section that went later and the later changes were composed first: once the way out of
/// the section is a row of a deleted section it is not listed, and nothing is left to pair. Composing from the front keeps
/// every pair.
///
/// Both must be well formed, as `Change.validate` checks, and `second` must fit what `first` leaves.
/// O(size of the two changes), whatever the length of the feed.
public func compose(_ first: Change, _ second: Change) -> Change {
  if first.isEmpty { return second }
  if second.isEmpty { return first }
  if first.onlyUpdates && second.onlyUpdates {
    return Change(updated: mergeAscending(first.updated, second.updated))
  }
  return ChangeComposer(first, second).composed()
}

/// The ascending union of two ascending lists.
func mergeAscending<Value: Comparable>(_ left: [Value], _ right: [Value]) -> [Value] {
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

/// Composes many changes into one as they come.
///
/// It keeps partial compositions in order of arrival, each at least twice as large as the next, so every entry takes part in
/// O(log n) compositions however many changes are added, and a large change is not copied for each small one after it.
public struct ChangeAccumulator: Sendable {
  private var parts: [Change] = []

  /// An accumulator to which nothing was added: its composition is the empty change.
  public init() {}

  /// True only when the composition is empty; when false it may still turn out to be.
  public var isEmpty: Bool { parts.isEmpty }

  /// An upper bound for the size of the composition, for limits. O(log n).
  public var size: Int { parts.reduce(0) { $0 + $1.size } }

  /// Adds a change whose before-coordinates are the after-coordinates of the one added last.
  ///
  /// Amortised O(log n) for each entry of `change`.
  public mutating func add(_ change: Change) {
    if change.isEmpty { return }
    var last = change
    while let previous = parts.last, previous.size < 2 * last.size {
      parts.removeLast()
      last = compose(previous, last)
    }
    if !last.isEmpty { parts.append(last) }
  }

  /// The composition of everything added since the start or the last `finish()`; more may be added to it. O(size).
  public mutating func composed() -> Change {
    guard var result = parts.popLast() else { return .empty }
    while let previous = parts.popLast() { result = compose(previous, result) }
    if !result.isEmpty { parts.append(result) }
    return result
  }

  /// The composition of everything added since the start or the last `finish()`, and starts over. O(size).
  public mutating func finish() -> Change {
    let result = composed()
    parts.removeAll(keepingCapacity: true)
    return result
  }
}

/// The working of `compose(_:_:)`. The state between the two changes is called the middle.
struct ChangeComposer {
  /// Stands for "no place" in the tables below.
  private static let none = UInt32.max

  private let first: Change
  private let second: Change
  private var result = Change()

  /// For every entry of `second.deleted` the entry of `first.added` that it takes away again, or none.
  private var undone: [UInt32] = []
  /// The places in the result's `deleted` of `first.deleted` and `second.deleted`, or none.
  private var deletedOfFirst: [UInt32] = []
  private var deletedOfSecond: [UInt32] = []
  /// The places in the result's `added` of `first.added` and `second.added`, or none.
  private var addedOfFirst: [UInt32] = []
  private var addedOfSecond: [UInt32] = []
  /// The rows of `first.added` that survive `second`, in the coordinates after `second`, ascending.
  private var carried: [IndexPath] = []

  init(_ first: Change, _ second: Change) {
    self.first = first
    self.second = second
  }

  consuming func composed() -> Change {
    composeSections()
    composeDeleted()
    composeAdded()
    composeUpdated()
    if !first.moves.isEmpty || !second.moves.isEmpty { composeMoves() }
    return result
  }

  private mutating func composeSections() {
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
      result.sectionsAdded.append(SectionAddition(at: at, name: addition.name))
    }
    result.sectionsAdded.append(contentsOf: second.sectionsAdded[next...])
  }

  /// Merges what `first` deleted with what `second` deleted of the rows that were there before `first`. Rows whose section
  /// goes are not listed.
  private mutating func composeDeleted() {
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
      }
    }
    var backward = ChangeMap(backward: first)
    for (place, path) in second.deleted.enumerated() {
      switch backward.map(path) {
      case .at(let before):
        appendOfFirst(before: before, &self)
        deletedOfSecond[place] = UInt32(truncatingIfNeeded: result.deleted.count)
        result.deleted.append(before)
      case .listed(let entry):
        undone[place] = UInt32(truncatingIfNeeded: entry)
      case .sectionGone:
        break
      }
    }
    appendOfFirst(before: nil, &self)
  }

  /// Merges what `second` added with what `first` added and `second` left in.
  private mutating func composeAdded() {
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
      }
    }
    var forward = ChangeMap(forward: second)
    for (place, path) in first.added.enumerated() {
      guard case .at(let after) = forward.map(path) else { continue }
      appendOfSecond(before: after, &self)
      addedOfFirst[place] = UInt32(truncatingIfNeeded: result.added.count)
      result.added.append(after)
      carried.append(after)
    }
    appendOfSecond(before: nil, &self)
  }

  /// Merges what `first` updated and `second` left in with what `second` updated, without the rows that `first` added.
  private mutating func composeUpdated() {
    var forward = ChangeMap(forward: second)
    let ofFirst = first.updated.compactMap { path -> IndexPath? in
      guard case .at(let after) = forward.map(path) else { return nil }
      return after
    }
    var ofSecond = second.updated
    if !carried.isEmpty {
      var next = 0
      ofSecond.removeAll { path in
        while next < carried.count, carried[next] < path { next += 1 }
        return next < carried.count && carried[next] == path
      }
    }
    result.updated = mergeAscending(ofFirst, ofSecond)
  }

  /// Joins the moves of both over the places found above; a pair one of whose ends is not listed any more is no move.
  private mutating func composeMoves() {
    var secondMove = [UInt32](repeating: Self.none, count: second.deleted.count)
    for move in second.moves { secondMove[Int(move.deleted)] = addedOfSecond[Int(move.added)] }

    var fate = addedOfFirst
    var target = [UInt32](repeating: Self.none, count: result.deleted.count)
    for place in second.deleted.indices where secondMove[place] != Self.none {
      if undone[place] != Self.none {
        fate[Int(undone[place])] = secondMove[place]
      } else if deletedOfSecond[place] != Self.none {
        target[Int(deletedOfSecond[place])] = secondMove[place]
      }
    }
    for move in first.moves where deletedOfFirst[Int(move.deleted)] != Self.none {
      target[Int(deletedOfFirst[Int(move.deleted)])] = fate[Int(move.added)]
    }
    for (deleted, added) in target.enumerated() where added != Self.none {
      result.moves.append(Move(deleted: UInt32(truncatingIfNeeded: deleted), added: added))
    }
  }
}
