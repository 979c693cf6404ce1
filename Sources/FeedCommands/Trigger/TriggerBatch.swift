import FeedChange
import FeedClient

/// The changes since the last batch, coalesced: a row added and then deleted is not in it, one updated twice is in it once.
///
/// Invariant: the places of the rows are those of the last change, and `before` those at the start of the batch.
struct TriggerBatch {
  /// The rows that were added, updated or moved, by their present path.
  private var rows: [IndexPath: TriggerChange] = [:]
  /// The rows that were there at the start of the batch and are deleted.
  private var gone: [TriggerChange] = []
  /// The texts of the deltas, which are not in the file yet.
  private(set) var deltas: [String] = []
  /// The revision before the batch, and the position after its last delta; nil if there is none.
  private(set) var span: (start: UInt64, end: FeedPosition)?

  var count: Int { rows.count + gone.count }

  /// Adds the rows of a delta, after which the feed is at `position`.
  mutating func add(_ changes: [TriggerChange], _ delta: Delta, _ position: FeedPosition) {
    deltas.append(delta.text)
    span = (span?.start ?? delta.from, position)
    var (deleted, moved): (Set<IndexPath>, [IndexPath: IndexPath]) = ([], [:])
    for row in changes {
      guard let path = row.before?.path else { continue }
      if let to = row.after?.path { moved[path] = to } else { deleted.insert(path) }
    }
    var map = ChangeMap(forward: delta.change)
    let known = rows
    rows = [:]
    for (path, row) in known.sorted(by: { $0.key < $1.key }) {
      let destination = map.map(path)
      if deleted.contains(path) {
        if row.kind != .added { gone.append(row.deleted) }
      } else if let to = moved[path] {
        rows[to] = row
      } else if case .at(let to) = destination {
        rows[to] = row
        rows[to]?.after?.path = to
      }
    }
    for row in changes {
      if let to = row.after?.path {
        rows[to] = rows[to].map { $0.followed(by: row) } ?? row
      } else if row.before.map({ known[$0.path] == nil }) ?? true {
        gone.append(row)
      }
    }
  }

  /// The changes in order: those of deleted rows, then the others by their places.
  var changes: [TriggerChange] {
    var (left, came): ([[UInt8]: Int], [[UInt8]: Int]) = ([:], [:])
    func identity(_ row: TriggerChange) -> [UInt8]? { row.id.map(RowPrint.canonical) }
    for row in gone { if let id = identity(row) { left[id, default: 0] += 1 } }
    for row in rows.values where row.kind == .added { if let id = identity(row) { came[id, default: 0] += 1 } }
    // An element that was deleted and came back is updated.
    func hasReturned(_ row: TriggerChange) -> Bool { identity(row).map { left[$0] == 1 && came[$0] == 1 } ?? false }
    let returned = Dictionary(gone.filter(hasReturned).map { (identity($0) ?? [], $0.before) }) { first, _ in first }
    let present = rows.sorted { $0.key < $1.key }.map { _, row in
      guard row.kind == .added, hasReturned(row), let before = returned[identity(row) ?? []] else { return row }
      var updated = row
      (updated.kind, updated.isUpdated, updated.before) = (.updated, true, before)
      return updated
    }
    return gone.filter { !hasReturned($0) } + present
  }
}

extension TriggerChange {
  /// This row, deleted by a later change.
  fileprivate var deleted: TriggerChange {
    var row = self
    (row.kind, row.after, row.element, row.type) = (.deleted, nil, nil, nil)
    return row
  }

  /// The change of this one and a later one of the same row.
  fileprivate func followed(by later: TriggerChange) -> TriggerChange {
    var row = later
    row.before = before ?? later.before
    row.isUpdated = isUpdated || later.isUpdated
    row.isCertain = isCertain && later.isCertain
    switch (kind, later.kind) {
    case (.added, _): (row.kind, row.before) = (.added, nil)
    case (.moved, _), (_, .moved): row.kind = .moved
    default: row.kind = .updated
    }
    return row
  }
}
