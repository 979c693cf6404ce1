/// What is asked of nodes of any level; level 0 are the leaves.
extension PositionTree {
  func parent(of node: NodeID, level: UInt32) -> NodeID {
    level == 0 ? leaves.header(node).pointee.parent : inners.header(node).pointee.parent
  }

  func slot(of node: NodeID, level: UInt32) -> Int {
    Int(level == 0 ? leaves.header(node).pointee.slot : inners.header(node).pointee.slot)
  }

  /// How many items are in or below the node.
  func size(of node: NodeID, level: UInt32) -> UInt32 {
    level == 0 ? UInt32(leaves.header(node).pointee.count) : inners.header(node).pointee.size
  }

  /// Tells the children at `slots` of `node` their parent and place.
  func adopt(_ slots: Range<Int>, of node: NodeID) {
    let children = inners.children(node)
    if inners.header(node).pointee.level == 1 {
      for slot in slots {
        let header = leaves.header(children[slot])
        header.pointee.parent = node
        header.pointee.slot = UInt16(truncatingIfNeeded: slot)
      }
    } else {
      for slot in slots {
        let header = inners.header(children[slot])
        header.pointee.parent = node
        header.pointee.slot = UInt16(truncatingIfNeeded: slot)
      }
    }
  }

  /// Copies children to a place in another inner node, or the same; their starts become greater by `shift` (modulo 2^32).
  /// The counts and sizes are the caller's to set, and the children to be adopted.
  func moveChildren(from source: NodeID, _ start: Int, count: Int, to target: NodeID, _ place: Int, shift: UInt32) {
    (inners.children(target) + place).update(from: inners.children(source) + start, count: count)
    let starts = inners.starts(target) + place
    starts.update(from: inners.starts(source) + start, count: count)
    for index in 0..<count { starts[index] &+= shift }
    if keyed { (inners.firstKeys(target) + place).update(from: inners.firstKeys(source) + start, count: count) }
  }

  /// Whether nothing stands before the inner node on its level. O(log n).
  func isFirst(_ node: NodeID) -> Bool {
    var node = node
    while node != root {
      if inners.header(node).pointee.slot != 0 { return false }
      node = inners.header(node).pointee.parent
    }
    return true
  }

  /// Whether nothing stands after the inner node on its level. O(log n).
  func isLast(_ node: NodeID) -> Bool {
    var node = node
    while node != root {
      let header = inners.header(node)
      node = header.pointee.parent
      if header.pointee.slot + 1 != inners.header(node).pointee.count { return false }
    }
    return true
  }
}
