import Synchronization

/// The bytes of batches that were read from the stream and not executed yet. Any thread may use it.
final class ByteCounter: Sendable {
  private let count = Atomic<Int>(0)

  var value: Int { count.load(ordering: .relaxed) }

  fileprivate func add(_ bytes: Int) { count.add(bytes, ordering: .relaxed) }
}

/// The bytes of a received batch: those of a message, or joined from those of several. Counts them until the batch is executed.
final class HeldFrames: @unchecked Sendable {
  let frames: UnsafeRawBufferPointer
  /// Nil if the bytes are a copy.
  private let owner: AnyObject?
  private let counter: ByteCounter

  init(_ frames: UnsafeRawBufferPointer, _ owner: AnyObject?, _ counter: ByteCounter) {
    (self.frames, self.owner, self.counter) = (frames, owner, counter)
    counter.add(frames.count)
  }

  convenience init(copying bytes: [UInt8], _ counter: ByteCounter) {
    let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 8)
    copy.copyBytes(from: bytes)
    self.init(UnsafeRawBufferPointer(copy), nil, counter)
  }

  deinit {
    counter.add(-frames.count)
    if owner == nil { frames.deallocate() }
  }
}
