import Synchronization

/// The bytes of batches that were read from the stream and not executed yet. Any thread may use it.
final class ByteCounter: Sendable {
  private let count = Atomic<Int>(0)

  var value: Int { count.load(ordering: .relaxed) }

  fileprivate func add(_ bytes: Int) { count.add(bytes, ordering: .relaxed) }
}

/// The bytes of a received batch: those of a message, or joined from those of several.
final class HeldFrames: @unchecked Sendable {
  let frames: UnsafeRawBufferPointer
  private let owner: AnyObject?

  init(_ frames: UnsafeRawBufferPointer, _ owner: AnyObject) {
    self.frames = frames
    self.owner = owner
  }

  init(_ bytes: [UInt8]) {
    let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 8)
    copy.copyBytes(from: bytes)
    frames = UnsafeRawBufferPointer(copy)
    owner = nil
  }

  deinit { if owner == nil { frames.deallocate() } }
}

/// Keeps the bytes of a batch alive, and counts them until it is executed.
final class HeldBytes: @unchecked Sendable {
  private let frames: HeldFrames
  private let counter: ByteCounter

  init(_ frames: HeldFrames, _ counter: ByteCounter) {
    self.frames = frames
    self.counter = counter
    counter.add(frames.frames.count)
  }

  deinit { counter.add(-frames.frames.count) }
}
