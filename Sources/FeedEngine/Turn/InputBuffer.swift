import Glibc

/// The beginning of an incomplete frame, in memory that is allocated only while it is needed.
///
/// Does not free its memory automatically: call ``removeAll()``.
struct InputBuffer {
  private(set) var start: UnsafeMutableRawPointer?
  private(set) var count = 0
  private(set) var capacity = 0

  /// The size of the first allocation.
  private static let smallest = 512
  /// The next size of the memory for a longer frame. From there on the memory doubles: the length that a frame claims
  /// is allocated only as its bytes arrive.
  private static let firstStep = 64 << 10

  var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: start, count: count) }

  /// Replaces the content by `bytes`, which must not be in this buffer. Frees the memory if there are none.
  mutating func replace(_ bytes: UnsafeRawBufferPointer) {
    guard let source = bytes.baseAddress, bytes.count > 0 else {
      removeAll()
      return
    }
    if bytes.count > capacity || capacity > max(bytes.count &* 4, Self.smallest) { allocate(bytes.count) }
    start?.copyMemory(from: source, byteCount: bytes.count)
    count = bytes.count
  }

  /// Returns memory after the held bytes to read into.
  /// - Parameter total: the length of the incomplete frame; 0 if it is unknown.
  mutating func space(towards total: Int) -> UnsafeMutableRawBufferPointer {
    let wanted = max(total, count &+ 1)
    if wanted > capacity {
      resize(to: min(wanted, count &+ max(count, Self.firstStep)))
    }
    return UnsafeMutableRawBufferPointer(start: start.map { $0 + count }, count: capacity &- count)
  }

  /// Adds bytes that were read into ``space(towards:)``.
  mutating func didAppend(_ more: Int) { count &+= more }

  /// Removes the first `taken` bytes. O(bytes left).
  mutating func removeFirst(_ taken: Int) {
    guard taken > 0, let start else { return }
    let left = count &- taken
    guard left > 0 else {
      removeAll()
      return
    }
    start.copyMemory(from: start + taken, byteCount: left)
    count = left
    if capacity > max(left &* 4, 4096) { resize(to: left) }
  }

  /// Frees the memory.
  mutating func removeAll() {
    free(start)
    start = nil
    count = 0
    capacity = 0
  }

  private mutating func allocate(_ size: Int) {
    free(start)
    start = nil
    resize(to: size)
  }

  /// Moves the bytes to memory of another size. The system moves large memory by page tables, without copying.
  private mutating func resize(to size: Int) {
    capacity = max(size, Self.smallest)
    guard let new = realloc(start, capacity) else { preconditionFailure("there is no memory for a frame") }
    start = new
  }
}
