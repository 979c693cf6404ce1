/// Consecutive items of a position tree at one moment, read in order and in parts while the tree changes.
///
/// A snapshot has the ids of the leaves. Before a leaf that is not read yet changes, it captures the items (copy on
/// write). It retains the tree until it is read to the end, cancelled or released.
///
/// Invariant: the pending leaves and the captured ones have exactly the items that are not read.
public final class PositionSnapshot {
  public let count: Int
  /// The number of items that were read.
  public private(set) var position = 0

  private var tree: PositionTree?
  /// The index in the tree's list of snapshots. Written by the tree only.
  fileprivate var place = 0
  private var leaves: SnapshotLeaves
  private var captured: CapturedLeaves
  private var charge = SnapshotCharge()

  fileprivate init(of tree: PositionTree, count: Int, leaves: SnapshotLeaves, _ captured: CapturedLeaves) {
    self.count = count
    self.tree = count > 0 ? tree : nil
    (self.leaves, self.captured) = (leaves, captured)
  }

  deinit { cancel() }

  /// The bytes of a snapshot besides its lists.
  private static let ownBytes = 512

  /// Charges the memory of the snapshot, also what it captures later, until it is read to the end or cancelled.
  func charge(to memory: SnapshotMemory) {
    precondition(!charge.isMade && captured.isEmpty, "a snapshot is charged once, when it is made")
    if tree != nil { charge.begin(memory, Self.ownBytes + leaves.byteCount) }
  }

  var isCharged: Bool { charge.isMade }

  /// Shares the charge for rows that only snapshots keep from now on, this one among them, if it is charged.
  func abandon(_ rows: AbandonedRows) { charge.abandon(rows) }

  /// Reads up to `max` items, calls `body` with what was captured of each, and returns their number; 0 at the end.
  ///
  /// The captured value is released after the call of `body`. O(max), with a lookup for each leaf.
  /// - Precondition: `max` is not negative, and `body` does not change the tree.
  public func next(max: Int, _ body: (UInt) -> Void) -> Int {
    next(max: max) { value in
      body(value)
      return false
    }
  }

  /// Reads up to `max` items like ``next(max:_:)``, and none after the first one for which `isLast` returns true.
  public func next(max: Int, upTo isLast: (UInt) -> Bool) -> Int {
    forEachLeaf(max: max) { leaf, range, tree in
      guard let tree else { return captured.take(range, of: leaf, upTo: isLast) }
      let items = tree.leaves.items(leaf)
      for place in range {
        let value = captured.capture(items[place])
        let ends = isLast(value)
        captured.release(value)
        if ends { return (place + 1, false) }
      }
      return (range.upperBound, true)
    }
  }

  /// Passes over up to `max` items, and returns their number; 0 at the end. O(leaves), without a look at their items.
  /// - Precondition: `max` is not negative.
  public func skip(max: Int) -> Int {
    forEachLeaf(max: max) { leaf, range, tree in
      if tree == nil { return captured.take(range, of: leaf) { _ in false } }
      return (range.upperBound, true)
    }
  }

  /// Advances by up to `max` items, and returns their number. Calls `body` for each leaf with the range of its items, and with
  /// the tree if they are in it; otherwise they are captured. It returns the end of the items that it took, at least one, and whether
  /// it goes on.
  private func forEachLeaf(
    max: Int, _ body: (NodeID, Range<Int>, PositionTree?) -> (end: Int, goesOn: Bool)
  ) -> Int {
    precondition(max >= 0, "a negative number of items")
    guard let tree else { return 0 }
    let goal = position + min(max, count - position)
    let start = position
    var goesOn = true
    while goesOn && position < goal {
      let leaf = leaves.current
      let isPending = leaves.isPending(leaf)
      let available = isPending ? leaves.itemCount(of: leaf, tree) : captured.count(of: leaf)
      let range = leaves.offset..<min(available, leaves.offset + goal - position)
      let taken = body(leaf, range, isPending ? tree : nil)
      position += taken.end - range.lowerBound
      goesOn = taken.goesOn
      if taken.end < available {
        leaves.offset = taken.end
      } else {
        if isPending { leaves.setDone(leaf) } else { charge.add(-captured.forget(leaf)) }
        leaves.advance()
      }
    }
    let read = position - start
    if position == count { cancel() }
    return read
  }

  /// Releases the captured items that were not read, and the tree. Later reads return no items.
  public func cancel() {
    guard let tree else { return }
    tree.remove(self)
    self.tree = nil
    captured.releaseAll()
    charge.end()
    leaves = SnapshotLeaves()
  }

  /// Captures the unread items of `leaf`, which is about to change, if they are not captured yet.
  /// - Parameter shared: what other snapshots captured of the leaf, which has not changed since.
  fileprivate func preserve(_ leaf: NodeID, _ shared: inout [Range<Int>: CapturedItems]) {
    guard let tree, leaves.isPending(leaf) else { return }
    leaves.setDone(leaf)
    let range = (leaves.isCurrent(leaf) ? leaves.offset : 0)..<leaves.itemCount(of: leaf, tree)
    let items: CapturedItems
    if let made = shared[range] {
      items = made
    } else {
      items = captured.makeItems(range, of: leaf, tree)
      shared[range] = items
    }
    captured.add(items, of: leaf)
    charge.add(items.bytes)
    if leaves.isCurrent(leaf) { leaves.offset = 0 }
  }

  #if CHECK_INVARIANTS
    /// Checks the place in the tree's list, and that the number of items left to read is right. O(leaves).
    func checkInvariants(at place: Int) {
      guard let tree else { return }
      precondition(self.place == place, "a snapshot is not at its place")
      let left = leaves.rest.reduce(0) {
        $0 + (leaves.isPending($1) ? leaves.itemCount(of: $1, tree) : captured.count(of: $1))
      }
      precondition(left - leaves.offset == count - position, "a snapshot lost or gained items")
    }
  #endif
}

/// The leaves of a snapshot in order, and the place up to which they were read.
private struct SnapshotLeaves {
  private var leaves: [NodeID] = []
  /// The number of items of the last leaf up to the end of the snapshot.
  private var lastCount = 0
  /// The index of the leaf that is read next.
  private var index = 0
  /// The number of its items, or captured items, that were read.
  var offset = 0
  /// A bit for each leaf id: set while the leaf is neither read nor changed, so that it is read from the tree.
  private var pending: [UInt64] = []

  init() {}

  init(_ leaves: [NodeID], offset: Int, lastCount: Int, of tree: PositionTree) {
    (self.leaves, self.offset, self.lastCount) = (leaves, offset, lastCount)
    pending = [UInt64](repeating: 0, count: (Int(tree.leaves.used) + 63) / 64)
    for leaf in leaves { pending[Int(leaf) / 64] |= 1 << UInt64(leaf % 64) }
  }

  var byteCount: Int { leaves.count * MemoryLayout<NodeID>.stride + pending.count * MemoryLayout<UInt64>.stride }
  var current: NodeID { leaves[index] }
  /// The leaves that are not read to their end.
  var rest: ArraySlice<NodeID> { leaves[index...] }
  func isCurrent(_ leaf: NodeID) -> Bool { index < leaves.count && leaves[index] == leaf }
  mutating func advance() { (index, offset) = (index + 1, 0) }

  /// The number of items of a pending leaf up to the end of the snapshot.
  func itemCount(of leaf: NodeID, _ tree: PositionTree) -> Int {
    leaf == leaves[leaves.count - 1] ? lastCount : Int(tree.leaves.header(leaf).pointee.count)
  }

  /// A leaf allocated after the snapshot has an id without a bit, or the id of a leaf that was captured before it was freed.
  func isPending(_ leaf: NodeID) -> Bool {
    let word = Int(leaf / 64)
    return word < pending.count && pending[word] >> UInt64(leaf % 64) & 1 == 1
  }

  mutating func setDone(_ leaf: NodeID) { pending[Int(leaf / 64)] &= ~(1 << UInt64(leaf % 64)) }
}

/// Items of a leaf before it changed, held by the snapshots that had not read them.
private final class CapturedItems {
  let items: [UInt]
  /// The bytes that each snapshot is charged for.
  let bytes: Int
  private let release: (UInt) -> Void

  init(_ items: [UInt], size: (UInt) -> Int, release: @escaping (UInt) -> Void) {
    (self.items, self.release) = (items, release)
    bytes = items.reduce(items.count * MemoryLayout<UInt>.stride) { $0 + size($1) }
  }

  deinit { items.forEach(release) }
}

/// The captured items of changed leaves, without those that were read before the change.
private struct CapturedLeaves {
  let capture: (UInt32) -> UInt
  let release: (UInt) -> Void
  let size: (UInt) -> Int
  private var leaves: [NodeID: CapturedItems] = [:]

  init(capture: @escaping (UInt32) -> UInt, release: @escaping (UInt) -> Void, size: @escaping (UInt) -> Int) {
    (self.capture, self.release, self.size) = (capture, release, size)
  }

  var isEmpty: Bool { leaves.isEmpty }
  func count(of leaf: NodeID) -> Int { leaves[leaf]?.items.count ?? 0 }

  /// Captures items of a leaf of the tree.
  func makeItems(_ range: Range<Int>, of leaf: NodeID, _ tree: PositionTree) -> CapturedItems {
    let source = tree.leaves.items(leaf)
    return CapturedItems(range.map { capture(source[$0]) }, size: size, release: release)
  }

  mutating func add(_ items: CapturedItems, of leaf: NodeID) { leaves[leaf] = items }

  /// Calls `isLast` with items of a leaf, up to the first one for which it returns true. Returns the end of the items that were
  /// taken, and whether there was none.
  func take(_ range: Range<Int>, of leaf: NodeID, upTo isLast: (UInt) -> Bool) -> (end: Int, goesOn: Bool) {
    guard let items = leaves[leaf]?.items else { preconditionFailure("the leaf is captured") }
    for place in range where isLast(items[place]) { return (place + 1, false) }
    return (range.upperBound, true)
  }

  /// Releases the items of a leaf, which were read. Returns the bytes that were charged for them.
  mutating func forget(_ leaf: NodeID) -> Int { leaves.removeValue(forKey: leaf)?.bytes ?? 0 }

  mutating func releaseAll() { leaves = [:] }
}

private struct SnapshotCharge {
  /// Who is charged; nil if nobody is.
  private var memory: SnapshotMemory?
  private var bytes = 0
  /// The rows that only snapshots keep, if this is one of them, and its number among them.
  private var abandoned: (rows: AbandonedRows, holder: Int)?

  var isMade: Bool { memory != nil }

  mutating func begin(_ memory: SnapshotMemory, _ bytes: Int) {
    self.memory = memory
    add(bytes)
  }

  mutating func add(_ bytes: Int) {
    guard let memory else { return }
    self.bytes += bytes
    memory.add(bytes)
  }

  mutating func abandon(_ rows: AbandonedRows) { if let memory { abandoned = (rows, rows.add(memory)) } }

  mutating func end() {
    add(-bytes)
    if let abandoned { abandoned.rows.leave(abandoned.holder) }
    abandoned = nil
  }
}

extension PositionTree {
  /// Whether there are unfinished snapshots. Without any, the cost for a mutation is one branch.
  public var hasSnapshots: Bool { !snapshots.isEmpty }
  var hasChargedSnapshots: Bool { snapshots.contains { $0._withUnsafeGuaranteedRef { $0.isCharged } } }

  /// Lets the unfinished snapshots share the charge for the tree and its elements, which only they keep from now on.
  func abandon(_ rows: AbandonedRows) {
    for snapshot in snapshots { snapshot._withUnsafeGuaranteedRef { $0.abandon(rows) } }
  }

  /// Returns a snapshot of the items that are in `rows` now. O(log n + rows / 64), with four bytes for each leaf.
  ///
  /// `capture` returns the value that the snapshot passes on for an item, such as a retained pointer to the element's text.
  /// The value must stay valid until `release` is called with it. `capture` is called when the item is read, or before the
  /// first change of its leaf. `size` returns the bytes that a captured value keeps, for `PositionSnapshot.charge(to:)`.
  /// - Precondition: `rows` is within `0..<count`. The owner of the elements calls `contentWillChange(of:)` before it changes an element in place, and
  ///   removes an item from the tree before it frees the handle. Neither closure changes the tree.
  public func makeSnapshot(
    of rows: Range<Int>, capture: @escaping (UInt32) -> UInt, release: @escaping (UInt) -> Void,
    size: @escaping (UInt) -> Int = { _ in 0 }
  ) -> PositionSnapshot {
    precondition(rows.lowerBound >= 0 && rows.upperBound <= count, "rows out of range")
    let (leaves, offset, lastCount) = leavesInOrder(of: rows)
    let snapshot = PositionSnapshot(
      of: self, count: rows.count,
      leaves: SnapshotLeaves(leaves, offset: offset, lastCount: lastCount, of: self),
      CapturedLeaves(capture: capture, release: release, size: size))
    if !rows.isEmpty {
      snapshot.place = snapshots.count
      snapshots.append(Unmanaged.passUnretained(snapshot))
    }
    return snapshot
  }

  /// Lets snapshots capture the element of `item` before it changes in place. Does nothing if `item` is not in the tree. O(1)
  /// without snapshots; otherwise each captures at most one leaf.
  public func contentWillChange(of item: UInt32) {
    if !hasSnapshots { return }
    let leaf = leafOf[item]
    if leaf != .none { preserve(leaf) }
  }

  /// Lets each snapshot that has not read `leaf` capture it. Called before its items change, move or are removed. Snapshots that
  /// capture the same items share them: there may be tens of thousands.
  func preserve(_ leaf: NodeID) {
    var shared: [Range<Int>: CapturedItems] = [:]
    for snapshot in snapshots { snapshot._withUnsafeGuaranteedRef { $0.preserve(leaf, &shared) } }
  }

  func preserveAll() { for leaf in leavesInOrder(of: 0..<count).leaves { preserve(leaf) } }

  /// O(1): the last snapshot takes the place.
  func remove(_ snapshot: PositionSnapshot) {
    let last = snapshots.removeLast()
    if last.toOpaque() == Unmanaged.passUnretained(snapshot).toOpaque() { return }
    last._withUnsafeGuaranteedRef { $0.place = snapshot.place }
    snapshots[snapshot.place] = last
  }

  /// The ids of the leaves of `rows` in order, from the lowest inner nodes; the number of items of the first leaf before the
  /// rows, and of the last leaf up to their end. O(log n + rows / 64).
  private func leavesInOrder(of rows: Range<Int>) -> (leaves: [NodeID], offset: Int, lastCount: Int) {
    if rows.isEmpty { return ([], 0, 0) }
    // The first and the last row, counted from the first and the last node.
    var (first, last) = (UInt32(rows.lowerBound), UInt32(rows.upperBound - 1))
    var nodes = [root]
    for _ in 0..<height {
      let final = nodes.count - 1
      let low = inners.slot(of: nodes[0], row: first)
      let high = inners.slot(of: nodes[final], row: last)
      first -= inners.starts(nodes[0])[low]
      last -= inners.starts(nodes[final])[high]
      var children: [NodeID] = []
      for (place, node) in nodes.enumerated() {
        let end = place == final ? high + 1 : Int(inners.header(node).pointee.count)
        for slot in (place == 0 ? low : 0)..<end { children.append(inners.children(node)[slot]) }
      }
      nodes = children
    }
    return (nodes, Int(first), Int(last) + 1)
  }
}
