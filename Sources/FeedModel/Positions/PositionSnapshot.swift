/// Consecutive items of a position tree at one moment, read in order and in parts while the tree changes.
///
/// A snapshot has the ids of the leaves. Before a mutation changes a leaf that is not read yet, the snapshot captures its items
/// (copy on write); all other leaves are read from the tree. It retains the tree until it is read to the end, cancelled or
/// released.
///
/// Invariant: the pending leaves and the captured ones have exactly the items that are not read.
public final class PositionSnapshot {
  /// The number of items.
  public let count: Int
  /// The number of items that were read.
  public private(set) var position = 0

  private var tree: PositionTree?
  private let capture: (UInt32) -> UInt
  private let release: (UInt) -> Void
  private var leaves: [NodeID]
  /// The number of items of the last leaf up to the end of the snapshot.
  private let lastCount: Int
  /// The index in `leaves` of the leaf that is read next, and the number of its items, or captured items, that were read.
  private var current = 0
  private var offset = 0
  /// A bit for each leaf id: set while the leaf is neither read nor changed, so that it is read from the tree.
  private var pending: [UInt64]
  /// The captured items of changed leaves, without those that were read before, and the bytes charged for them.
  private var preserved: [NodeID: (items: [UInt], bytes: Int)] = [:]
  /// What is charged for the snapshot until it is cancelled; nil if nothing is.
  private var memory: SnapshotMemory?
  private var charged = 0
  /// The rows that only snapshots keep, if this is one of them, and its number among them.
  private var abandoned: (rows: AbandonedRows, holder: Int)?
  private let size: (UInt) -> Int

  /// - Parameters:
  ///   - leaves: the leaves of the items.
  ///   - offset: the number of items of the first leaf before the snapshot.
  ///   - lastCount: the number of items of the last leaf up to the end of the snapshot.
  init(
    of tree: PositionTree, count: Int, leaves: [NodeID], offset: Int, lastCount: Int,
    capture: @escaping (UInt32) -> UInt, release: @escaping (UInt) -> Void, size: @escaping (UInt) -> Int
  ) {
    self.count = count
    self.tree = count > 0 ? tree : nil
    self.leaves = leaves
    self.offset = offset
    self.lastCount = lastCount
    self.capture = capture
    self.release = release
    self.size = size
    pending = [UInt64](repeating: 0, count: (Int(tree.leaves.used) + 63) / 64)
    for leaf in leaves { pending[Int(leaf) / 64] |= 1 << UInt64(leaf % 64) }
  }

  deinit {
    cancel()
  }

  /// The bytes of a snapshot besides its lists.
  private static let ownBytes = 512

  /// Charges the memory of the snapshot, also what it captures later, until it is read to the end or cancelled.
  func charge(to memory: SnapshotMemory) {
    precondition(self.memory == nil && preserved.isEmpty, "a snapshot is charged once, when it is made")
    if tree == nil { return }
    self.memory = memory
    charge(Self.ownBytes + leaves.count * MemoryLayout<NodeID>.stride + pending.count * MemoryLayout<UInt64>.stride)
  }

  var isCharged: Bool { memory != nil }

  /// Shares the charge for rows that only snapshots keep from now on, this one among them, if it is charged.
  func abandon(_ rows: AbandonedRows) {
    if let memory { abandoned = (rows, rows.add(memory)) }
  }

  private func charge(_ bytes: Int) {
    charged += bytes
    memory?.add(bytes)
  }

  /// Reads up to `max` items, calls `body` with what was captured of each, and returns their number; 0 at the end.
  ///
  /// The captured value is released after the call of `body`. O(max), with a lookup for each leaf.
  ///
  /// - Precondition: `max` is not negative, and `body` does not change the tree.
  public func next(max: Int, _ body: (UInt) -> Void) -> Int {
    precondition(max >= 0, "a negative number of items")
    guard let tree else { return 0 }
    let goal = position + min(max, count - position)
    let start = position
    while position < goal {
      let leaf = leaves[current]
      if isPending(leaf) {
        readInTree(leaf, tree, goal, body)
      } else {
        readPreserved(leaf, goal, body)
      }
    }
    if position == count { cancel() }
    return goal - start
  }

  /// Passes over up to `max` items, and returns their number; 0 at the end. O(leaves), without a look at their items.
  ///
  /// - Precondition: `max` is not negative.
  public func skip(max: Int) -> Int {
    precondition(max >= 0, "a negative number of items")
    guard let tree else { return 0 }
    let goal = position + min(max, count - position)
    let start = position
    while position < goal {
      let leaf = leaves[current]
      let isInTree = isPending(leaf)
      let payloads = isInTree ? [] : preserved[leaf]?.items ?? []
      let available = isInTree ? itemCount(of: leaf, tree) : payloads.count
      let end = min(available, offset + goal - position)
      position += end - offset
      if !isInTree { for payload in payloads[offset..<end] { release(payload) } }
      offset = end
      if offset == available {
        if isInTree { setDone(leaf) } else { forget(leaf) }
        advance()
      }
    }
    if position == count { cancel() }
    return goal - start
  }

  /// Releases the captured items that were not read, and the tree. Later reads return no items.
  public func cancel() {
    guard let tree else { return }
    tree.remove(self)
    self.tree = nil
    for (leaf, captured) in preserved {
      for payload in captured.items[(isCurrent(leaf) ? offset : 0)...] { release(payload) }
    }
    preserved = [:]
    charge(-charged)
    if let abandoned { abandoned.rows.leave(abandoned.holder) }
    abandoned = nil
    pending = []
    leaves = []
  }

  /// Captures the unread items of `leaf`, which is about to change, if they are not captured yet.
  func preserve(_ leaf: NodeID) {
    guard let tree, isPending(leaf) else { return }
    setDone(leaf)
    let start = isCurrent(leaf) ? offset : 0
    let items = tree.leaves.items(leaf)
    let captured = (start..<itemCount(of: leaf, tree)).map { capture(items[$0]) }
    var bytes = 0
    if memory != nil {
      bytes = captured.reduce(captured.count * MemoryLayout<UInt>.stride) { $0 + size($1) }
      charge(bytes)
    }
    preserved[leaf] = (captured, bytes)
    if isCurrent(leaf) { offset = 0 }
  }

  private func readInTree(_ leaf: NodeID, _ tree: PositionTree, _ goal: Int, _ body: (UInt) -> Void) {
    let items = tree.leaves.items(leaf)
    let available = itemCount(of: leaf, tree)
    let end = min(available, offset + goal - position)
    position += end - offset
    while offset < end {
      let payload = capture(items[offset])
      body(payload)
      release(payload)
      offset += 1
    }
    if offset == available {
      setDone(leaf)
      advance()
    }
  }

  private func readPreserved(_ leaf: NodeID, _ goal: Int, _ body: (UInt) -> Void) {
    let payloads = preserved[leaf]?.items ?? []
    let end = min(payloads.count, offset + goal - position)
    position += end - offset
    while offset < end {
      body(payloads[offset])
      release(payloads[offset])
      offset += 1
    }
    if offset == payloads.count {
      forget(leaf)
      advance()
    }
  }

  /// Forgets the captured items of a leaf, which were read and released.
  private func forget(_ leaf: NodeID) {
    guard let captured = preserved.removeValue(forKey: leaf) else { return }
    charge(-captured.bytes)
  }

  /// The number of items of a pending leaf up to the end of the snapshot.
  private func itemCount(of leaf: NodeID, _ tree: PositionTree) -> Int {
    leaf == leaves[leaves.count - 1] ? lastCount : Int(tree.leaves.header(leaf).pointee.count)
  }

  private func advance() {
    current += 1
    offset = 0
  }

  private func isCurrent(_ leaf: NodeID) -> Bool {
    current < leaves.count && leaves[current] == leaf
  }

  /// A leaf allocated after the snapshot has an id without a bit, or the id of a leaf that was captured before it was freed.
  private func isPending(_ leaf: NodeID) -> Bool {
    let word = Int(leaf / 64)
    return word < pending.count && pending[word] >> UInt64(leaf % 64) & 1 == 1
  }

  private func setDone(_ leaf: NodeID) {
    pending[Int(leaf / 64)] &= ~(1 << UInt64(leaf % 64))
  }

  #if CHECK_INVARIANTS
    /// Checks that the number of items left to read is right. O(leaves).
    func checkInvariants() {
      guard let tree else { return }
      var left = 0
      for leaf in leaves[current...] {
        left += isPending(leaf) ? itemCount(of: leaf, tree) : (preserved[leaf]?.items ?? []).count
      }
      precondition(left - offset == count - position, "a snapshot lost or gained items")
    }
  #endif
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
  ///
  /// - Precondition: `rows` is within `0..<count`. The owner of the elements calls `contentWillChange(of:)` before it changes an element in place, and
  ///   removes an item from the tree before it frees the handle. Neither closure changes the tree.
  public func makeSnapshot(
    of rows: Range<Int>, capture: @escaping (UInt32) -> UInt, release: @escaping (UInt) -> Void,
    size: @escaping (UInt) -> Int = { _ in 0 }
  ) -> PositionSnapshot {
    precondition(rows.lowerBound >= 0 && rows.upperBound <= count, "rows out of range")
    let (leaves, offset, lastCount) = leavesInOrder(of: rows)
    let snapshot = PositionSnapshot(
      of: self, count: rows.count, leaves: leaves, offset: offset, lastCount: lastCount, capture: capture,
      release: release, size: size)
    if !rows.isEmpty { snapshots.append(Unmanaged.passUnretained(snapshot)) }
    return snapshot
  }

  /// Lets snapshots capture the element of `item` before it changes in place. Does nothing if `item` is not in the tree. O(1)
  /// without snapshots; otherwise each captures at most one leaf.
  public func contentWillChange(of item: UInt32) {
    if !hasSnapshots { return }
    let leaf = leafOf[item]
    if leaf != .none { preserve(leaf) }
  }

  /// Lets each snapshot that has not read `leaf` capture it. Called before its items change, move or are removed.
  func preserve(_ leaf: NodeID) {
    for snapshot in snapshots {
      snapshot._withUnsafeGuaranteedRef { $0.preserve(leaf) }
    }
  }

  func preserveAll() {
    for leaf in leavesInOrder(of: 0..<count).leaves { preserve(leaf) }
  }

  func remove(_ snapshot: PositionSnapshot) {
    let pointer = Unmanaged.passUnretained(snapshot).toOpaque()
    snapshots.removeAll { $0.toOpaque() == pointer }
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
