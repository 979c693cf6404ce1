import FeedChange

/// The row counts of the sections of a feed, in order, and their prefix sums.
///
/// A treap: a search tree by position, and a heap by random priorities. Operations on one section are O(log sections).
///
/// Invariant: `size` and `rows` of a node count the nodes and rows of its subtree.
struct SectionCounts {
  private struct Node {
    var left: Int32 = -1
    var right: Int32 = -1
    let priority: UInt64
    var count: Int
    var size: Int32 = 1
    var rows: Int
  }

  private var nodes: [Node] = []
  private var free: [Int32] = []
  private var root: Int32 = -1
  private var seed: UInt64 = 0x9E37_79B9_7F4A_7C15

  init(_ counts: some Sequence<Int>) { for count in counts { insert(count, at: self.count) } }

  var count: Int { size(root) }
  var total: Int { rows(root) }
  subscript(index: Int) -> Int { locate(index).count }
  func start(of index: Int) -> Int { locate(index).start }
  private func size(_ node: Int32) -> Int { node < 0 ? 0 : Int(nodes[Int(node)].size) }
  private func rows(_ node: Int32) -> Int { node < 0 ? 0 : nodes[Int(node)].rows }

  private func locate(_ index: Int) -> (start: Int, count: Int) {
    precondition((0..<count).contains(index), "there is no section \(index)")
    var (node, rest, start) = (root, index, 0)
    while true {
      let (left, count) = (nodes[Int(node)].left, nodes[Int(node)].count)
      let before = size(left)
      if rest < before {
        node = left
      } else if rest == before {
        return (start + rows(left), count)
      } else {
        start += rows(left) + count
        rest -= before + 1
        node = nodes[Int(node)].right
      }
    }
  }

  /// Adds `difference` to the number of rows of a section.
  mutating func add(_ difference: Int, at index: Int) {
    precondition((0..<count).contains(index), "there is no section \(index)")
    var (node, rest) = (root, index)
    while true {
      nodes[Int(node)].rows += difference
      let before = size(nodes[Int(node)].left)
      if rest == before {
        nodes[Int(node)].count += difference
        assert(nodes[Int(node)].count >= 0, "a section has less than no rows")
        return
      }
      if rest < before {
        node = nodes[Int(node)].left
      } else {
        rest -= before + 1
        node = nodes[Int(node)].right
      }
    }
  }

  mutating func insert(_ count: Int, at index: Int) {
    seed ^= seed << 13
    seed ^= seed >> 7
    seed ^= seed << 17
    let node = Node(priority: seed, count: count, rows: count)
    let id = free.popLast() ?? Int32(nodes.count)
    if Int(id) == nodes.count { nodes.append(node) } else { nodes[Int(id)] = node }
    let (left, right) = split(root, index)
    root = merge(merge(left, id), right)
  }

  mutating func remove(at index: Int) {
    let (left, rest) = split(root, index)
    let (node, right) = split(rest, 1)
    free.append(node)
    root = merge(left, right)
  }

  /// Splits a subtree after its first `index` sections.
  private mutating func split(_ node: Int32, _ index: Int) -> (Int32, Int32) {
    if node < 0 { return (-1, -1) }
    let before = size(nodes[Int(node)].left)
    if index <= before {
      let (left, right) = split(nodes[Int(node)].left, index)
      nodes[Int(node)].left = right
      sum(node)
      return (left, node)
    }
    let (left, right) = split(nodes[Int(node)].right, index - before - 1)
    nodes[Int(node)].right = left
    sum(node)
    return (node, right)
  }

  private mutating func merge(_ left: Int32, _ right: Int32) -> Int32 {
    if left < 0 { return right }
    if right < 0 { return left }
    if nodes[Int(left)].priority > nodes[Int(right)].priority {
      nodes[Int(left)].right = merge(nodes[Int(left)].right, right)
      sum(left)
      return left
    }
    nodes[Int(right)].left = merge(left, nodes[Int(right)].left)
    sum(right)
    return right
  }

  private mutating func sum(_ node: Int32) {
    let (left, right) = (nodes[Int(node)].left, nodes[Int(node)].right)
    nodes[Int(node)].size = Int32(size(left) + 1 + size(right))
    nodes[Int(node)].rows = rows(left) + nodes[Int(node)].count + rows(right)
  }

  /// Applies a change of the feed. Returns it as a change of one section, which lists the rows of deleted sections.
  /// - Parameter shift: the number of sections of the feed before those of the change.
  ///
  /// O((size + rows of deleted sections) · log sections).
  mutating func follow(_ change: borrowing Change, shift: UInt32, _ pace: Pace? = nil) -> Change {
    var result = Change()
    follow(change, shift: shift, pace) { flat, _ in result = copy flat }
    return result
  }

  /// Applies a change of the feed, and calls `body` with it as a change of one section, and with the number of rows after
  /// it. The change of a feed with one section is not copied.
  @inline(__always)
  mutating func follow(
    _ change: borrowing Change, shift: UInt32, _ pace: Pace? = nil, _ body: (borrowing Change, Int) -> Void
  ) {
    if count == 1, change.hasSameSections {
      assert(shift == 0, "the feed has one section")
      if change.added.count != change.deleted.count { add(change.added.count - change.deleted.count, at: 0) }
      body(change, total)
    } else {
      let flat = flatten(change, shift, pace)
      body(flat, total)
    }
  }

  private mutating func flatten(_ change: borrowing Change, _ shift: UInt32, _ pace: Pace?) -> Change {
    let first = Int(shift)
    var result = Change()
    result.moves = listDeleted(change, first, pace, in: &result.deleted)
    carryOut(change, first)
    result.added = flat(change.added, first, pace)
    result.updated = flat(change.updated, first, pace)
    return result
  }

  /// Lists the deleted rows, with those of deleted sections. Returns the moves of all rows that were added elsewhere.
  private func listDeleted(
    _ change: borrowing Change, _ first: Int, _ pace: Pace?, in deleted: inout [IndexPath]
  ) -> [Move] {
    /// For each entry of `change.deleted`, its index in `deleted`.
    var places: [UInt32] = []
    places.reserveCapacity(change.deleted.count)
    deleted.reserveCapacity(change.deleted.count + change.transfers.count)
    var moves: [Move] = []
    moves.reserveCapacity(change.moves.count + change.transfers.count)
    var start = SectionStart()
    func list(before section: UInt32?) {
      while places.count < change.deleted.count, section.map({ change.deleted[places.count].section < $0 }) ?? true {
        places.append(UInt32(deleted.count))
        deleted.append(start.flat(change.deleted[places.count - 1], first, self))
        if places.count & 63 == 0 { pace?.spend() }
      }
    }
    for index in change.sectionsDeleted.indices {
      list(before: change.sectionsDeleted[index])
      let place = UInt32(deleted.count)
      let (begin, count) = locate(first + Int(change.sectionsDeleted[index]))
      for row in begin..<(begin + count) {
        deleted.append(IndexPath(section: 0, row: UInt32(row)))
        if row & 127 == 127 { pace?.spend() }
      }
      while moves.count < change.transfers.count,
        change.transfers[moves.count].from.section == change.sectionsDeleted[index]
      {
        let known = change.transfers[moves.count]
        moves.append(Move(deleted: place + known.from.row, added: known.added, keepsElement: known.keepsElement))
        if moves.count & 127 == 0 { pace?.spend() }
      }
    }
    list(before: nil)
    assert(moves.count == change.transfers.count, "a row is transferred from a section that stays")
    for index in change.moves.indices {
      let move = change.moves[index]
      moves.append(Move(deleted: places[Int(move.deleted)], added: move.added, keepsElement: move.keepsElement))
      if index & 63 == 63 { pace?.spend() }
    }
    if !change.transfers.isEmpty { moves.sort(pace) { $0.deleted < $1.deleted } }
    return moves
  }

  /// The rows among those of all sections.
  private func flat(_ paths: [IndexPath], _ first: Int, _ pace: Pace?) -> [IndexPath] {
    if paths.isEmpty { return [] }
    var rows: [IndexPath] = []
    rows.reserveCapacity(paths.count)
    var start = SectionStart()
    for path in paths {
      rows.append(start.flat(path, first, self))
      if rows.count & 63 == 0 { pace?.spend() }
    }
    return rows
  }

  private mutating func carryOut(_ change: borrowing Change, _ first: Int) {
    add(-1, for: change.deleted, first)
    for index in change.sectionsDeleted.indices.reversed() { remove(at: first + Int(change.sectionsDeleted[index])) }
    for index in change.sectionsAdded.indices { insert(0, at: first + Int(change.sectionsAdded[index].at)) }
    add(1, for: change.added, first)
  }

  /// Adds `difference` for each row, once for all rows of a section. O(rows + sections · log sections).
  private mutating func add(_ difference: Int, for rows: [IndexPath], _ first: Int) {
    var start = 0
    while start < rows.count {
      let section = rows[start].section
      let end = rows[start...].firstIndex { $0.section != section } ?? rows.count
      add(difference * (end - start), at: first + Int(section))
      start = end
    }
  }
}

/// The start of the section of the last query, cached because rows usually come section by section.
private struct SectionStart {
  private var section: UInt32?
  private var start = 0

  mutating func flat(_ path: IndexPath, _ first: Int, _ counts: SectionCounts) -> IndexPath {
    if section != path.section {
      section = path.section
      start = counts.start(of: first + Int(path.section))
    }
    return IndexPath(section: 0, row: UInt32(truncatingIfNeeded: start) &+ path.row)
  }
}

/// A change of one flat list, which maps the rows of the list across it.
///
/// A class, so that an array of changes is copied and searched without counting references to the lists of each.
final class FlatChange: Sendable {
  /// The rows after the change that may show other elements: updated ones, and moved ones that do not keep theirs.
  let replaced: [Int]
  private let deleted: [Int]
  private let added: [Int]
  /// The new rows of moved rows, by index in `deleted`; -1 for rows that are gone. Empty if no row moved.
  private let moved: [Int]
  /// For each entry of `deleted`, the end of the moved rows from there on that stay next to each other. Empty if no row moved.
  private let movedEnds: [Int]

  static let none = FlatChange(.empty)

  /// Uses the rows of the paths only: all sections are taken for one list. O(size).
  init(_ change: borrowing Change, _ pace: Pace? = nil) {
    deleted = change.deleted.map(pace) { Int($0.row) }
    added = change.added.map(pace) { Int($0.row) }
    var replaced = change.updated.map(pace) { Int($0.row) }
    var moved = [Int](repeating: -1, count: change.moves.isEmpty ? 0 : deleted.count)
    for index in change.moves.indices {
      let move = change.moves[index]
      let row = Int(change.added[Int(move.added)].row)
      moved[Int(move.deleted)] = row
      if !move.keepsElement { replaced.append(row) }
      if index & 127 == 127 { pace?.spend() }
    }
    self.replaced = replaced
    self.moved = moved
    movedEnds = Self.ends(of: moved, deleted, pace)
  }

  /// For each deleted row, the end of the rows from there on that move by the same distance.
  private static func ends(of moved: [Int], _ deleted: [Int], _ pace: Pace?) -> [Int] {
    var ends: [Int] = []
    ends.reserveCapacity(moved.count)
    for place in moved.indices.reversed() {
      let isJoined =
        place + 1 < moved.count && moved[place] >= 0 && moved[place + 1] == moved[place] + 1
        && deleted[place + 1] == deleted[place] + 1
      ends.append(isJoined ? ends[ends.count - 1] : deleted[place] + 1)
      if place & 127 == 127 { pace?.spend() }
    }
    return ends.reversed()
  }

  /// Whether no row was added, deleted or moved.
  var isIdentity: Bool { deleted.isEmpty && added.isEmpty }

  /// Maps a row. Returns its new row and the end of the range that shifts with it: all rows from `index` to `end` shift
  /// by the same distance. Returns nil if the row was deleted. O(log size).
  func map(_ index: Int) -> (index: Int, end: Int)? {
    let gone = deleted.countOfPrefix { $0 < index }
    if gone < deleted.count, deleted[gone] == index {
      return moved.isEmpty || moved[gone] < 0 ? nil : (moved[gone], movedEnds[gone])
    }
    let rank = index - gone
    let come = added.indices.partitionPoint { added[$0] - $0 <= rank }
    var end = gone < deleted.count ? deleted[gone] : Int.max
    if come < added.count { end = min(end, index + added[come] - come - rank) }
    return (rank + come, end)
  }
}
