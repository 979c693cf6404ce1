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
