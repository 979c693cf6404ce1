import FeedChange

/// The shared selection of a feed (seed 002, "Opt-In Behaviours"): which rows are selected, for everybody who asks.
///
/// Selected is the element, not the place: a selected row keeps being selected while changes move it, and is dropped
/// when it goes.
extension Feed {
  /// Selects rows, besides those that are or, where only one may be, in their place. Returns whether anything changed.
  ///
  /// - Throws: `permissionDenied`, `indexOutOfRange`, `invalidParams` for several rows where only one may be.
  public func select(_ paths: [IndexPath]) throws(FeedError) -> Bool {
    try checkMaySelect()
    for path in paths { try check(path) }
    let wanted = Set(paths)
    if !behaviours.multiple && wanted.count > 1 {
      throw .invalidParams(
        member: "at", reason: "names several rows, and feed \"\(name)\" is defined with \"multiple\": false")
    }
    if !behaviours.multiple && wanted.isEmpty { return false }
    return setSelection(behaviours.multiple ? Set(selection).union(wanted).sorted() : wanted.sorted())
  }

  /// Refuses to select where the definition forbids it.
  public func checkMaySelect() throws(FeedError) {
    guard behaviours.selectable else {
      throw .permissionDenied(reason: "feed \"\(name)\" is defined with \"selectable\": false")
    }
  }

  /// Deselects rows; those that are not selected are no change. Returns whether anything changed.
  public func deselect(_ paths: [IndexPath]) throws(FeedError) -> Bool {
    for path in paths { try check(path) }
    return setSelection(Set(selection).subtracting(paths).sorted())
  }

  /// Deselects everything. Returns whether anything changed.
  public func deselectAll() -> Bool {
    setSelection([])
  }

  /// Every row there is, for `all`.
  public var allPaths: [IndexPath] {
    (0..<sectionCount).flatMap { index in
      (0..<section(at: index).count).map { IndexPath(section: UInt32(index), row: UInt32($0)) }
    }
  }

  /// Carries the selection across a change of this feed. Returns whether the selected paths are others now. O(selected + change).
  func carrySelection(across change: Change) -> Bool {
    if selection.isEmpty { return false }
    var map = ChangeMap(forward: change)
    var carried: [IndexPath] = []
    for path in selection {
      switch map.map(path) {
      case .at(let target): carried.append(target)
      case .listed(let place):
        if let move = change.moves.first(where: { $0.deleted == UInt32(place) }) {
          carried.append(change.added[Int(move.added)])
        }
      case .sectionGone: break
      }
    }
    return setSelection(carried.sorted())
  }

  private func setSelection(_ paths: [IndexPath]) -> Bool {
    if paths == selection { return false }
    selection = paths
    return true
  }

  private func check(_ path: IndexPath) throws(FeedError) {
    _ = try self.path(section: Int(path.section), row: Int(path.row))
  }

  /// The path of a row that is there.
  ///
  /// - Throws: `indexOutOfRange`, also for numbers below 0.
  public func path(section index: Int, row: Int) throws(FeedError) -> IndexPath {
    guard (0..<sectionCount).contains(index) else {
      throw .indexOutOfRange(feed: name, index: index, count: sectionCount, what: "section")
    }
    let count = section(at: index).count
    guard (0..<count).contains(row) else {
      throw .indexOutOfRange(feed: name, index: row, count: count, what: "row")
    }
    return IndexPath(section: UInt32(index), row: UInt32(row))
  }
}
