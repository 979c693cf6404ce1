#if CHECK_INVARIANTS
  extension PositionTree {
    /// Checks the tree after each mutation if it is small, and after each 1024th mutation otherwise.
    func sampleInvariants() {
      mutations &+= 1
      if count <= 1000 || mutations % 1024 == 0 { checkInvariants() }
    }

    /// Checks the links in both directions, the counts, the keys, the table, and that nodes are neither full nor underfull. O(n).
    func checkInvariants() {
      var previous = NodeID.none
      let found = check(root, level: height, parent: .none, slot: 0, previous: &previous)
      precondition(found == count, "the count is wrong")
      precondition(leaves.header(previous).pointee.next == .none, "the last leaf has a next one")
      for snapshot in snapshots { snapshot._withUnsafeGuaranteedRef { $0.checkInvariants() } }
    }

    /// Checks a node and the nodes below it. Returns the number of its items.
    private func check(_ node: NodeID, level: Int, parent: NodeID, slot: Int, previous: inout NodeID) -> Int {
      if level == 0 { return check(leaf: node, parent: parent, slot: slot, previous: &previous) }
      let header = inners.header(node).pointee
      precondition(
        header.parent == parent && header.slot == slot && header.level == level, "an inner node is misplaced")
      precondition(header.count <= innerLimit && header.count > 0, "an inner node has no or too many children")
      precondition(node != root || header.count > 1, "the root has a single child")
      precondition(
        header.count >= innerMinimum || isFirst(node) || isLast(node), "an inner node is underfull")
      var size = 0
      for slot in 0..<Int(header.count) {
        let child = inners.children(node)[slot]
        precondition(inners.starts(node)[slot] == size, "a start is wrong")
        size += check(child, level: level - 1, parent: node, slot: slot, previous: &previous)
        if keyed {
          let key = level > 1 ? inners.firstKeys(child)[0] : leaves.keys(child)[0]
          precondition(inners.firstKeys(node)[slot] == key, "a first key is wrong")
        }
      }
      precondition(header.size == size, "a size is wrong")
      for slot in Int(header.count)..<InnerPool.capacity {
        precondition(inners.starts(node)[slot] == .max, "an unused start is not reset")
      }
      return size
    }

    private func check(leaf: NodeID, parent: NodeID, slot: Int, previous: inout NodeID) -> Int {
      let header = leaves.header(leaf).pointee
      precondition(header.parent == parent && (parent == .none || header.slot == slot), "a leaf is misplaced")
      precondition(header.previous == previous, "a leaf's link to the previous one is wrong")
      precondition(
        previous == .none || leaves.header(previous).pointee.next == leaf, "a leaf's link to the next one is wrong")
      precondition(header.count <= leafLimit, "a leaf is too full")
      precondition(header.count > 0 || leaf == root, "a leaf is empty")
      precondition(
        header.count >= leafMinimum || header.previous == .none || header.next == .none, "a leaf is underfull")
      for offset in 0..<Int(header.count) {
        precondition(leafOf[leaves.items(leaf)[offset]] == leaf, "the table names another leaf")
      }
      previous = leaf
      return Int(header.count)
    }
  }
#endif
