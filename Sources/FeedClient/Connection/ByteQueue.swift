/// Bytes that come at one end and are taken at the other: raw memory that is used again and again and grows with what
/// comes.
package struct ByteQueue: ~Copyable {
  private var block: UnsafeMutableRawPointer
  private var capacity: Int
  private var head = 0
  private var tail = 0

  /// - Parameter capacity: at least 4.
  package init(capacity: Int) {
    self.capacity = capacity
    block = .allocate(byteCount: capacity, alignment: 16)
  }

  deinit { block.deallocate() }

  /// How many bytes have come and were not consumed.
  package var count: Int { tail - head }

  /// Those bytes; valid until the next ``room(atLeast:)``, consumed or not.
  package var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: block + head, count: tail - head) }

  /// Room to put bytes into, at least a quarter of the whole; tell ``didFill(_:)`` how much was put there.
  package mutating func room(atLeast minimum: Int = 1) -> UnsafeMutableRawBufferPointer {
    if head == tail { (head, tail) = (0, 0) }
    while capacity - tail < max(minimum, capacity / 4) {
      if head >= capacity / 2 {
        block.copyMemory(from: block + head, byteCount: count)
      } else {
        let larger = UnsafeMutableRawPointer.allocate(byteCount: capacity * 2, alignment: 16)
        larger.copyMemory(from: block + head, byteCount: count)
        block.deallocate()
        (block, capacity) = (larger, capacity * 2)
      }
      (head, tail) = (0, tail - head)
    }
    return UnsafeMutableRawBufferPointer(start: block + tail, count: capacity - tail)
  }

  /// Takes over the first `count` bytes of the last ``room(atLeast:)``.
  package mutating func didFill(_ count: Int) { tail += count }

  /// Takes the first `count` bytes away.
  package mutating func consume(_ count: Int) { head += count }
}
