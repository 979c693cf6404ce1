/// The items of a position tree as they were when the snapshot was made, read in order and in parts.
///
/// The snapshot notes the leaves and nothing else. A leaf that it has not read is captured by the first mutation that touches
/// it; the others are read where they are. It keeps its tree alive until it is read to the end, cancelled or dropped.
public final class PositionSnapshot {
  /// How many items there are in all.
  public let count: Int
  /// How many of them were read.
  public private(set) var position = 0

  private var tree: PositionTree?
  private let capture: (UInt32) -> UInt
  private let release: (UInt) -> Void
  private var leaves: [NodeID]
  /// The index in `leaves` of the leaf that is read next, and how many of its items, or of what is preserved of it, were read.
  private var current = 0
  private var offset = 0
  /// A bit for every leaf id: set while the leaf is unread and as it was, so that it is read in the tree.
  private var pending: [UInt64]
  /// What was captured of leaves that changed, without what was read before.
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

  /// Reads up to `max` more items, hands what was captured of each to `body`, and returns how many there were: 0 at the end.
  ///
  /// What `body` gets is released after the call of `body`. `body` must not change the tree. O(max), with a lookup for each leaf.
  public func next(max: Int, _ body: (UInt) -> Void) -> Int {
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

  /// Releases everything that was captured and not read. There is nothing more to read then.
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

  /// Captures what was not read of `leaf` if that is needed: it is about to change.
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
      goOn()
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
      goOn()
    }
  }

  private func goOn() {
    current += 1
    offset = 0
  }

  private func isCurrent(_ leaf: NodeID) -> Bool {
    current < leaves.count && leaves[current] == leaf
  }

  /// A leaf made after the snapshot has an id past the bits, or that of a leaf that was preserved when it went.
  private func isPending(_ leaf: NodeID) -> Bool {
    let word = Int(leaf / 64)
    return word < pending.count && pending[word] >> UInt64(leaf % 64) & 1 == 1
  }

  private func setDone(_ leaf: NodeID) {
    pending[Int(leaf / 64)] &= ~(1 << UInt64(leaf % 64))
  }

  #if CHECK_INVARIANTS
    /// Checks that what is left to read adds up.
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
  /// Whether there are snapshots that are neither read to their end nor dropped. While there are none, they cost a mutation one
  /// branch.
  public var hasSnapshots: Bool { !snapshots.isEmpty }

  /// The items that are in the tree now, to be read in parts while the tree goes on changing.
  ///
  /// `capture` makes of an item what the snapshot hands out, and must keep that alive until `release` is called with it: for
  /// example a retained pointer to the element's text. It is called when the item is read, or earlier, just before the
  /// first change of the leaf it stands in; so the owner of the elements calls `contentWillChange(of:)` before it changes an
  /// element behind its handle, and takes an item out of the tree before it gives the handle up. Neither closure may change
  /// the tree.
  ///
  /// O(n / 64), with four bytes for each leaf.
  public func makeSnapshot(
    capture: @escaping (UInt32) -> UInt, release: @escaping (UInt) -> Void
  ) -> PositionSnapshot {
    let snapshot = PositionSnapshot(of: self, leaves: leavesInOrder(), capture: capture, release: release)
    if count > 0 { snapshots.append(Unmanaged.passUnretained(snapshot)) }
    return snapshot
  }

  /// To be called before the element behind `item` changes while the item stays in its place, so that snapshots hand out the
  /// element as it was. Nothing happens when the item is not in the tree. O(1) without snapshots, else at most one leaf is
  /// captured for each.
  public func contentWillChange(of item: UInt32) {
    if !hasSnapshots { return }
    let leaf = leafOf[item]
    if leaf != .none { preserve(leaf) }
  }

  /// Lets every snapshot that still needs `leaf` capture it. To be called before its items change, move or go.
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

  /// The ids of all leaves in order, read off the lowest inner nodes. O(n / 64).
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
