import FeedJSON

/// Encoded frames in one block of memory, parts of which are in the output queues of connections.
///
/// Queues refer to it without retaining it: a ``TurnBuffer`` outlives the writes of its turn, and a ``SharedBlock`` counts the
/// parts that queues hold.
class EncodedFrames {
  final var bytes: ByteBuffer

  fileprivate init(_ bytes: consuming ByteBuffer) { self.bytes = bytes }

  /// Counts a part that was not written in this turn.
  func note(unwritten count: Int) {}

  /// Returns the block that has the frames after the turn, and the offset of the first one. Returns nil if a part of so many bytes
  /// must be copied instead.
  func keep(part count: Int) -> (block: SharedBlock, offset: Int)? { nil }

  /// The frames, also after they were moved to a block.
  var frames: UnsafeRawBufferPointer { bytes.bytes }
}

/// The frames that are encoded in one turn, until the end of the turn's writes.
///
/// Nothing is counted for connections that take their output at once. What others did not take is moved to one block for all of
/// them. Each copies its part instead if the parts are a small part of the block, or if only one connection has a short part.
final class TurnBuffer: EncodedFrames {
  /// Whether a frame can have several receivers.
  private let isShared: Bool
  /// The number of parts that were not written. Their bytes; for frames with one receiver each, the bytes of the longest part.
  private var unwritten = (parts: 0, bytes: 0)
  /// Where the frames of this turn are, if they were moved.
  private var moved: (block: SharedBlock, offset: Int)?
  /// The block with the frames of earlier, short turns, as long as queues hold them. The next short turn continues it.
  private(set) weak var open: SharedBlock?

  /// A part is copied if it is so many times shorter than the mean.
  private static let mostWaste = 8
  /// The most memory kept between turns. Larger memory is released.
  private static let keptCapacity = 1 << 20

  init(isShared: Bool = false) {
    self.isShared = isShared
    super.init(ByteBuffer())
  }

  override func note(unwritten count: Int) {
    unwritten.parts &+= 1
    unwritten.bytes = isShared ? unwritten.bytes &+ count : max(unwritten.bytes, count)
  }

  override func keep(part count: Int) -> (block: SharedBlock, offset: Int)? {
    if moved == nil && isWorthMoving { move() }
    // A reader that is about to finish does not hold what others have hardly begun.
    let isFair = count &* Self.mostWaste &* unwritten.parts >= unwritten.bytes
    return (isShared ? isFair : count == unwritten.bytes) ? moved : nil
  }

  /// Whether a block takes at most twice the memory of its parts and costs less than to copy them.
  private var isWorthMoving: Bool {
    let isLong = bytes.count >= SharedBlock.short
    return unwritten.bytes &* 2 >= bytes.count && (isLong || isShared && unwritten.parts > 1)
  }

  private func move() {
    if bytes.count >= SharedBlock.short {
      moved = (SharedBlock(taking: &bytes), 0)
      return
    }
    let block = open.flatMap { $0.isShort ? $0 : nil } ?? SharedBlock()
    open = block
    moved = (block, block.append(bytes.bytes))
  }

  override var frames: UnsafeRawBufferPointer {
    guard let moved else { return bytes.bytes }
    return UnsafeRawBufferPointer(rebasing: moved.block.bytes.bytes[moved.offset...])
  }

  /// Ends the turn: each part was written, moved or copied.
  func recycle() {
    moved = nil
    unwritten = (0, 0)
    bytes.removeAll(keepingCapacity: bytes.capacity <= Self.keptCapacity)
  }

  /// Releases the memory, which the turn no longer needs. All of it: a short rest would keep the gap behind it from being used again
  /// for as long a buffer.
  func releaseMemory() { bytes = ByteBuffer() }
}

/// The buffers that keep more than a little memory between turns. Each watched feed has a buffer, and this memory counts for nobody,
/// so only the last few keep it.
struct KeptBuffers {
  /// Every buffer may keep so much.
  static let little = 1 << 10
  static let most = 16

  private var buffers: [TurnBuffer] = []

  /// Lets a recycled buffer keep its memory until ``most`` others do.
  mutating func add(_ buffer: TurnBuffer) {
    if buffer.bytes.capacity <= Self.little || buffers.contains(where: { $0 === buffer }) { return }
    if buffers.count == Self.most { buffers.removeFirst().releaseMemory() }
    buffers.append(buffer)
  }
}

/// Frames that outlive their turn, shared by the queues that hold parts of them.
///
/// The bytes are charged once to each user with a connection that holds a part, whatever the number of its connections.
///
/// Invariant: `parts` is the sum of those of the users. The block is retained while there are any.
final class SharedBlock: EncodedFrames {
  /// The number of parts that queues hold, and that of each user.
  private(set) var parts = 0
  private var users: [UInt32: Int] = [:]
  /// The bytes that each user is charged for.
  private(set) var charge = 0
  /// The parts of one queue, and their bytes, while these are counted.
  private var tallied = (parts: 0, bytes: 0)

  /// A shorter block is continued, because each block needs a place in each queue.
  static let short = 16 << 10

  init() { super.init(ByteBuffer()) }

  /// Takes the frames, and their memory if at least half of it is used. The buffer is empty then: its owner may write more.
  init(taking frames: inout ByteBuffer) {
    var bytes = ByteBuffer()
    if frames.count &* 2 < frames.capacity {
      bytes.append(frames.bytes)
      frames.removeAll(keepingCapacity: true)
    } else {
      swap(&bytes, &frames)
    }
    super.init(bytes)
    charge = self.bytes.count
  }

  override func keep(part count: Int) -> (block: SharedBlock, offset: Int)? { (self, 0) }

  /// Whether more frames may be appended.
  var isShort: Bool { bytes.count < Self.short }

  /// Appends frames, which ``takeGrowth()`` reports. Returns their offset.
  func append(_ frames: UnsafeRawBufferPointer) -> Int {
    let offset = bytes.count
    bytes.append(frames)
    return offset
  }

  /// Counts a part. Returns the bytes to charge the user with.
  func hold(by uid: UInt32) -> Int {
    if parts == 0 { _ = Unmanaged.passRetained(self) }
    parts &+= 1
    users[uid, default: 0] += 1
    return users[uid] == 1 ? charge : 0
  }

  /// Removes a part. Returns the bytes that the user is no longer charged with.
  func release(by uid: UInt32) -> Int {
    guard let left = users[uid] else { preconditionFailure("a part is released once") }
    users[uid] = left > 1 ? left &- 1 : nil
    let freed = left > 1 ? 0 : charge
    parts &-= 1
    if parts == 0 { Unmanaged.passUnretained(self).release() }
    return freed
  }

  /// Counts a part of a queue that finds its blocks.
  func tally(_ bytes: Int) { tallied = (tallied.parts &+ 1, tallied.bytes &+ bytes) }

  /// Ends the count, after which it is 0. Returns the bytes if these are all parts of the block; nil if others hold parts too, or if
  /// the count has ended.
  func takeTally() -> Int? {
    let (count, bytes) = tallied
    tallied = (0, 0)
    return count > 0 && count == parts ? bytes : nil
  }

  /// The users to charge with the bytes that were appended, and how many these are.
  func takeGrowth() -> (users: some Collection<UInt32>, bytes: Int) {
    let growth = bytes.count &- charge
    charge = bytes.count
    return (users.keys, growth)
  }
}
