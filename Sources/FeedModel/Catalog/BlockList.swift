/// A list that grows and shrinks at its end in blocks, so that no step moves or frees many elements.
///
/// An array that grows to a million elements copies all of them at once now and then, and is freed at once. Here an append
/// copies at most a block, and ``removeLastBlock()`` frees one block at a time.
///
///     var list = BlockList<Int>()
///     for number in 0..<1_000_000 { list.append(number) }
///     while list.removeLastBlock() { pace.spend() }
///
/// Invariant: each block of `full` has `blockSize` elements, and `open` has at most as many.
struct BlockList<Element> {
  private static var shift: Int { 13 }
  /// The elements of a block.
  static var blockSize: Int { 1 << shift }

  private var full: [[Element]] = []
  private var open: [Element] = []

  init() {}

  @inline(__always)
  var isEmpty: Bool { open.isEmpty && full.isEmpty }

  /// Adds an element at the end. Amortized O(1); at most O(block).
  @inline(__always)
  mutating func append(_ element: Element) {
    if open.count == Self.blockSize { beginBlock() }
    open.append(element)
  }

  @inline(never)
  private mutating func beginBlock() {
    full.append(open)
    open = []
    open.reserveCapacity(Self.blockSize)
  }

  /// Removes and returns the last element; nil if there is none.
  mutating func popLast() -> Element? {
    if open.isEmpty, let last = full.popLast() { open = last }
    return open.popLast()
  }

  /// Removes the elements of the last block. Returns whether others are left. The memory of the first block is kept.
  mutating func removeLastBlock() -> Bool {
    if full.isEmpty {
      // Most commits have one step. The test is cheaper than the call.
      if open.count == 1 { open.removeLast() } else { open.removeAll(keepingCapacity: true) }
      return false
    }
    open = full.removeLast()
    return true
  }

  /// O(blocks).
  func checkInvariants() {
    precondition(full.allSatisfy { $0.count == Self.blockSize }, "a block has a gap")
    precondition(open.count <= Self.blockSize, "the last block is too long")
  }
}

extension BlockList: RandomAccessCollection {
  var startIndex: Int { 0 }
  var endIndex: Int { full.count << Self.shift &+ open.count }

  @inline(__always)
  subscript(index: Int) -> Element {
    let block = index >> Self.shift
    return block < full.count ? inFull(index) : open[index & (Self.blockSize - 1)]
  }

  @inline(never)
  private func inFull(_ index: Int) -> Element { full[index >> Self.shift][index & (Self.blockSize - 1)] }
}
