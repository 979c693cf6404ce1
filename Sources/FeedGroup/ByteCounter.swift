import Synchronization

/// The bytes of batches that were read from the stream and not executed yet. Any thread may use it.
final class ByteCounter: Sendable {
  private let count = Atomic<Int>(0)

  var value: Int { count.load(ordering: .relaxed) }

  fileprivate func add(_ bytes: Int) { count.add(bytes, ordering: .relaxed) }
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
