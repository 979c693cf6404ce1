/// The items of a position tree at one moment, read in order and in parts while the tree changes.
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
  /// The index in `leaves` of the leaf that is read next, and the number of its items, or captured items, that were read.
  private var current = 0
  private var offset = 0
  /// A bit for each leaf id: set while the leaf is neither read nor changed, so that it is read from the tree.
  private var pending: [UInt64]
  /// The captured items of changed leaves, without those that were read before.
  private var preserved: [NodeID: [UInt]] = [:]

  init(
    of tree: PositionTree, leaves: [NodeID], capture: @escaping (UInt32) -> UInt, release: @escaping (UInt) -> Void
  ) {
    count = tree.count
    self.tree = tree.count > 0 ? tree : nil
    self.leaves = leaves
    self.capture = capture
    self.release = release
    pending = [UInt64](repeating: 0, count: (Int(tree.leaves.used) + 63) / 64)
    for leaf in leaves { pending[Int(leaf) / 64] |= 1 << UInt64(leaf % 64) }
  }

  deinit {
    cancel()
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

  /// Releases the captured items that were not read, and the tree. Later reads return no items.
  public func cancel() {
    guard let tree else { return }
    tree.remove(self)
    self.tree = nil
    for (leaf, payloads) in preserved {
      for payload in payloads[(isCurrent(leaf) ? offset : 0)...] { release(payload) }
    }
    preserved = [:]
    pending = []
    leaves = []
  }

  /// Captures the unread items of `leaf`, which is about to change, if they are not captured yet.
  func preserve(_ leaf: NodeID) {
    guard let tree, isPending(leaf) else { return }
    setDone(leaf)
    let start = isCurrent(leaf) ? offset : 0
    let items = tree.leaves.items(leaf)
    preserved[leaf] = (start..<Int(tree.leaves.header(leaf).pointee.count)).map { capture(items[$0]) }
    if isCurrent(leaf) { offset = 0 }
  }

  private func readInTree(_ leaf: NodeID, _ tree: PositionTree, _ goal: Int, _ body: (UInt) -> Void) {
    let items = tree.leaves.items(leaf)
    let available = Int(tree.leaves.header(leaf).pointee.count)
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
    let payloads = preserved[leaf] ?? []
    let end = min(payloads.count, offset + goal - position)
    position += end - offset
    while offset < end {
      body(payloads[offset])
      release(payloads[offset])
      offset += 1
    }
    if offset == payloads.count {
      preserved[leaf] = nil
      advance()
    }
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
        left += isPending(leaf) ? Int(tree.leaves.header(leaf).pointee.count) : (preserved[leaf] ?? []).count
      }
      precondition(left - offset == count - position, "a snapshot lost or gained items")
    }
  #endif
}

extension PositionTree {
  /// Whether there are unfinished snapshots. Without any, the cost for a mutation is one branch.
  public var hasSnapshots: Bool { !snapshots.isEmpty }

  /// Returns a snapshot of the items that are in the tree now. O(n / 64), with four bytes for each leaf.
  ///
  /// `capture` returns the value that the snapshot passes on for an item, such as a retained pointer to the element's text.
  /// The value must stay valid until `release` is called with it. `capture` is called when the item is read, or before the
  /// first change of its leaf.
  ///
  /// - Precondition: the owner of the elements calls `contentWillChange(of:)` before it changes an element in place, and
  ///   removes an item from the tree before it frees the handle. Neither closure changes the tree.
  public func makeSnapshot(
    capture: @escaping (UInt32) -> UInt, release: @escaping (UInt) -> Void
  ) -> PositionSnapshot {
    let snapshot = PositionSnapshot(of: self, leaves: leavesInOrder(), capture: capture, release: release)
    if count > 0 { snapshots.append(Unmanaged.passUnretained(snapshot)) }
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
    for leaf in leavesInOrder() { preserve(leaf) }
  }

  func remove(_ snapshot: PositionSnapshot) {
    let pointer = Unmanaged.passUnretained(snapshot).toOpaque()
    snapshots.removeAll { $0.toOpaque() == pointer }
  }

  /// The ids of all leaves in order, from the lowest inner nodes. O(n / 64).
  private func leavesInOrder() -> [NodeID] {
    var nodes = [root]
    for _ in 0..<height {
      nodes = nodes.flatMap { node in
        UnsafeBufferPointer(start: inners.children(node), count: Int(inners.header(node).pointee.count))
      }
    }
    return nodes
  }
}
