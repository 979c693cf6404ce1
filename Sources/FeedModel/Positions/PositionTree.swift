/// An ordered list of item handles that finds the row of an item, the item of a row, and the row where a new one belongs, each
/// in O(log n), and lets the list be read in parts while it changes.
///
/// A handle is any number that its owner uses for an element, each at most once in a tree; a table with one entry a handle
/// leads from an item to its leaf, so handles should be dense. Rows count from 0. The tree is a B+tree in flat memory: leaves
/// of up to 124 items, inner nodes of up to 64 children with the number of items before each, and a link from every node to
/// its parent.
///
/// A keyed tree stores an ordering key with every item, of which it keeps the order that its owner gave it: see
/// `upperBound(key:isAfter:)`.
///
/// Not safe for use by several threads at once. A tree never holds more than `UInt32.max - 1` items.
public final class PositionTree {
  /// Whether a key is stored with every item.
  public let keyed: Bool
  /// How many items a leaf and how many children an inner node may hold: the capacities of the pools, less in tests.
  let leafLimit: Int
  let innerLimit: Int

  // Checking at run time that accesses to these do not overlap would cost as much as finding a row. They cannot: no closure of
  // a caller is run while one of them is being changed.
  @exclusivity(unchecked) var leaves: LeafPool
  @exclusivity(unchecked) var inners: InnerPool
  @exclusivity(unchecked) var leafOf = LeafTable()
  /// A leaf while `height` is 0, else an inner node.
  @exclusivity(unchecked) var root: NodeID
  /// How many levels of inner nodes there are.
  @exclusivity(unchecked) var height = 0
  /// How many items there are.
  @exclusivity(unchecked) public internal(set) var count = 0
  /// The snapshots that are not read to their end; they take themselves off when they are, or go.
  @exclusivity(unchecked) var snapshots: [Unmanaged<PositionSnapshot>] = []
  #if CHECK_INVARIANTS
    var mutations = 0
  #endif

  /// An empty tree.
  public convenience init(keyed: Bool) {
    self.init(keyed: keyed, leafLimit: LeafPool.capacity, innerLimit: InnerPool.capacity)
  }

  /// An empty tree with smaller nodes, so that small tests reach every way of splitting and joining them. Limits are at least 4.
  init(keyed: Bool, leafLimit: Int, innerLimit: Int) {
    self.keyed = keyed
    self.leafLimit = leafLimit
    self.innerLimit = innerLimit
    leaves = LeafPool(keyed: keyed)
    inners = InnerPool(keyed: keyed)
    root = leaves.allocate()
  }

  deinit {
    leaves.removeAll()
    inners.removeAll()
    leafOf.removeAll()
  }

  /// Removes every item and gives the memory back. O(memory), and O(n) while a snapshot has not read them.
  public func removeAll() {
    if hasSnapshots { preserveAll() }
    leaves.removeAll()
    inners.removeAll()
    leafOf.removeAll()
    root = leaves.allocate()
    height = 0
    count = 0
    #if CHECK_INVARIANTS
      sampleInvariants()
    #endif
  }
}
