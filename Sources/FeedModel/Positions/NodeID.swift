/// The id of a node in its pool. Leaves and inner nodes are numbered apart.
typealias NodeID = UInt32

extension NodeID {
  /// Stands for no node: the parent of the root, the neighbour past an end, the leaf of an item that is not in the tree.
  static let none = UInt32.max
}
