import FeedJSON
import FeedWire

/// The unwritten output of one connection: parts of blocks from earlier turns, then parts of this turn's buffers.
///
/// Frames are encoded once and written from where they are. A part that is not written by the end of the turn is held in a
/// ``SharedBlock``, with other connections or alone.
///
/// Each part belongs to a watch, or to none: frames for a watch can be discarded while none of their bytes is written, because
/// the watch can be told later what they told.
///
/// Invariant: a part consists of whole frames, except that the first one may begin within a frame. The parts before `firstFresh` are
/// counted by their blocks.
struct OutputQueue: ~Copyable {
  private struct Part {
    var source: Unmanaged<EncodedFrames>
    var start: Int
    var end: Int
    /// The number of the watch; 0 for none.
    var watch: UInt32

    var count: Int { end &- start }

    var bytes: UnsafeRawBufferPointer {
      source._withUnsafeGuaranteedRef { UnsafeRawBufferPointer(start: $0.bytes.pointer + start, count: count) }
    }

    var block: SharedBlock { unsafeDowncast(source.takeUnretainedValue(), to: SharedBlock.self) }

    /// Calls `body` with the block. Counts no reference.
    func withBlock<Result>(_ body: (SharedBlock) -> Result) -> Result {
      source._withUnsafeGuaranteedRef { body(unsafeDowncast($0, to: SharedBlock.self)) }
    }
  }

  /// The user that pays for the blocks.
  private let uid: UInt32
  private var parts: [Part] = []
  private var first = 0
  private var firstFresh = 0
  /// The number of bytes from earlier turns.
  private(set) var backlog = 0
  /// The number of bytes of this turn.
  private var fresh = 0
  /// The number of unwritten bytes of the first frame; 0 if the last write ended at the end of a frame.
  private var frameRest = 0
  /// The number of bytes at the front that are not discarded, because a frame after them says that they were sent.
  private var pinned = 0
  /// The block of the parts that only this queue holds, while it is short.
  private var own: SharedBlock?
  /// The bytes by which the charge of the user must change.
  private var dues = 0
  /// Whether output is left that is written when the connection is reported as writable. Set by the turn, which writes.
  var isBlocked = false

  /// Beyond so many parts, the list itself takes memory that counts.
  private static let manyParts = 1024

  init(uid: UInt32 = 0) { self.uid = uid }

  deinit {
    for part in parts[first..<firstFresh] { _ = part.block.release(by: uid) }
  }

  /// The number of unwritten bytes.
  var count: Int { backlog &+ fresh }

  /// Whether the next frame is for a watch.
  var beginsWithWatch: Bool { first < parts.count && parts[first].watch > 0 }

  /// Whether the output of earlier turns exceeds a limit in bytes, or has very many parts.
  func exceeds(_ limit: Int) -> Bool { backlog > limit || firstFresh &- first > Self.manyParts }

  /// The bytes of blocks that only this queue holds a part of and that were written already. O(parts).
  var spent: Int { backlog == 0 ? 0 : ownBlocks.reduce(0) { $0 + $1.block.charge - $1.owed } }

  /// The blocks that only this queue holds parts of, with the bytes of these. O(parts).
  private var ownBlocks: [(block: SharedBlock, owed: Int)] {
    // A dictionary of the blocks would take most of the time of `stats`.
    for part in parts[first..<firstFresh] { part.withBlock { $0.tally(part.count) } }
    var found: [(block: SharedBlock, owed: Int)] = []
    for part in parts[first..<firstFresh] {
      if let owed = part.withBlock({ $0.takeTally() }) { found.append((part.block, owed)) }
    }
    return found
  }

  /// The blocks that this queue holds parts of, each once. O(parts).
  var blocks: [SharedBlock] {
    var seen: Set<ObjectIdentifier> = []
    return parts[first..<firstFresh].map(\.block).filter { seen.insert(ObjectIdentifier($0)).inserted }
  }

  /// Whether the charge of the user must change.
  var hasDues: Bool { dues != 0 }

  /// Returns the bytes by which the charge of the user must change since the last call.
  mutating func takeDues() -> Int {
    defer { dues = 0 }
    return dues
  }

  /// Queues a part of a buffer, whole frames. It is not retained, and must keep them until ``keepRest()``. Extends the last part if
  /// this one continues it. O(1).
  mutating func append(_ source: EncodedFrames, from start: Int, to end: Int, watch: UInt32 = 0) {
    fresh &+= end &- start
    let source = Unmanaged.passUnretained(source)
    let last = parts.count &- 1
    if last >= firstFresh, parts[last].end == start, parts[last].watch == watch,
      parts[last].source.toOpaque() == source.toOpaque()
    {
      parts[last].end = end
    } else {
      parts.append(Part(source: source, start: start, end: end, watch: watch))
    }
  }

  /// The number of unwritten bytes of the first frame. Only if there is output.
  var firstFrame: Int {
    var reached = (part: first, start: 0)
    return frameRest > 0 ? frameRest : length(at: 0, &reached)
  }

  /// Keeps all frames that are queued now from being discarded.
  mutating func pin() { pinned = count }

  /// Fills `slices` with the unwritten bytes, in order. Returns the number of slices.
  func gather(into slices: UnsafeMutableBufferPointer<UnsafeRawBufferPointer>) -> Int {
    let used = min(parts.count &- first, slices.count)
    for place in 0..<used { slices[place] = parts[first &+ place].bytes }
    return used
  }

  /// Removes the first `count` bytes, which were written.
  ///
  /// O(parts written) if these are all bytes, otherwise O(frames written), to find the end of the current frame.
  mutating func consume(_ count: Int) {
    if count == self.count { frameRest = 0 } else { findFrame(after: count) }
    pinned = max(0, pinned &- count)
    let fromBacklog = min(count, backlog)
    backlog &-= fromBacklog
    fresh &-= count &- fromBacklog
    var rest = count
    while rest > 0 {
      let length = parts[first].count
      if rest < length {
        parts[first].start &+= rest
        break
      }
      rest &-= length
      removeFirst()
    }
    if first == parts.count { clear() }
  }

  private mutating func removeFirst() {
    if first < firstFresh { dues &-= parts[first].block.release(by: uid) } else { firstFresh &+= 1 }
    first &+= 1
  }

  /// Empties the list, whose parts are all removed.
  private mutating func clear() {
    parts.removeAll(keepingCapacity: parts.capacity <= Self.manyParts)
    (first, firstFresh) = (0, 0)
    own = nil
  }

  /// Frees the places of removed parts, if they are most of the list.
  private mutating func compact() {
    guard first > 64, first &* 2 > parts.count else { return }
    parts.removeFirst(first)
    firstFresh &-= first
    first = 0
  }

  /// Discards everything except the rest of a frame whose beginning was written.
  mutating func dropWholeFrames() {
    pinned = 0
    drop(where: { _ in true }) { _, _ in }
  }

  /// Discards everything.
  mutating func removeAll() { consume(count) }

  /// Discards the frames that belong to certain watches, except pinned ones and one whose beginning was written. Calls `body` with
  /// each of them, without its length, in order. O(parts + frames discarded).
  ///
  /// Parts of blocks that this queue holds alone are copied if at least a quarter of the block is free then.
  mutating func drop(
    where isDropped: (_ watch: UInt32) -> Bool, _ body: (_ watch: UInt32, _ frame: UnsafeRawBufferPointer) -> Void
  ) {
    var (place, offset, held) = (first, 0, first)
    for index in first..<parts.count {
      var part = parts[index]
      let isHeld = index < firstFresh
      let length = part.count
      let stays = min(length, max(0, max(frameRest, pinned) &- offset))
      offset &+= length
      if stays < length && isDropped(part.watch) {
        Self.forEachFrame(of: part.bytes[stays...]) { body(part.watch, $0) }
        if isHeld { backlog &-= length &- stays } else { fresh &-= length &- stays }
        part.end = part.start &+ stays
        if stays == 0 {
          if isHeld { dues &-= part.block.release(by: uid) }
          continue
        }
      }
      parts[place] = part
      place &+= 1
      if isHeld { held = place }
    }
    parts.removeLast(parts.count &- place)
    firstFresh = held
    if first == parts.count { return clear() }
    var freed: Set<ObjectIdentifier> = []
    for (block, owed) in ownBlocks where (block.charge - owed) * 4 >= block.charge {
      freed.insert(ObjectIdentifier(block))
    }
    if !freed.isEmpty { copyOut { freed.contains(ObjectIdentifier($0)) } }
  }

  private static func forEachFrame(of bytes: Slice<UnsafeRawBufferPointer>, _ body: (UnsafeRawBufferPointer) -> Void) {
    var rest = UnsafeRawBufferPointer(rebasing: bytes)
    while case .complete(let payload) = Frame.first(in: rest, maxFrame: .max) {
      body(payload)
      rest = UnsafeRawBufferPointer(rebasing: rest[(Frame.headerLength &+ payload.count)...])
    }
  }

  /// Sets `frameRest` for a write that ends at `offset`, before the end of the output.
  private mutating func findFrame(after offset: Int) {
    var next = frameRest
    var reached = (part: first, start: 0)
    while next < offset {
      next &+= length(at: next, &reached)
    }
    frameRest = next &- offset
  }

  /// Returns the number of bytes of the frame that begins at an offset. Its header is in one part, as frames are not divided.
  /// - Precondition: the offsets of successive calls ascend.
  /// - Parameter reached: the part that was read last, and the offset at which it begins.
  private func length(at offset: Int, _ reached: inout (part: Int, start: Int)) -> Int {
    while offset &- reached.start >= parts[reached.part].count {
      reached = (reached.part &+ 1, reached.start &+ parts[reached.part].count)
    }
    let header = UnsafeRawBufferPointer(rebasing: parts[reached.part].bytes[(offset &- reached.start)...])
    return Frame.headerLength &+ Frame.payloadLength(header)
  }
}

/// The end of a turn.
extension OutputQueue {
  /// Counts what was not written for the buffers that have it.
  func noteRest() {
    for part in parts[firstFresh...] { part.source._withUnsafeGuaranteedRef { $0.note(unwritten: part.count) } }
  }

  /// Holds the unwritten parts of this turn's buffers in blocks.
  /// - Precondition: all queues noted what was not written.
  mutating func keepRest() {
    if firstFresh < parts.count { holdFresh() }
    if first < firstFresh { leaveSpentBlock() }
  }

  private mutating func holdFresh() {
    var place = firstFresh
    for index in firstFresh..<parts.count {
      let part = keep(parts[index])
      if place > first, parts[place &- 1].end == part.start, parts[place &- 1].watch == part.watch,
        parts[place &- 1].source.toOpaque() == part.source.toOpaque()
      {
        parts[place &- 1].end = part.end
        continue
      }
      dues &+= part.block.hold(by: uid)
      parts[place] = part
      place &+= 1
    }
    parts.removeLast(parts.count &- place)
    firstFresh = place
    backlog &+= fresh
    fresh = 0
    compact()
  }

  /// Returns where a part of this turn is from now on.
  private mutating func keep(_ part: Part) -> Part {
    var part = part
    let count = part.count
    part.source._withUnsafeGuaranteedRef { source in
      guard let kept = source.keep(part: count) else { return copy(&part, of: source) }
      part.source = .passUnretained(kept.block)
      part.start &+= kept.offset
      part.end = part.start &+ count
    }
    return part
  }

  /// Copies a part to the block that only this queue holds.
  private mutating func copy(_ part: inout Part, of source: EncodedFrames) {
    let block = own.flatMap { $0.isShort ? $0 : nil } ?? SharedBlock()
    own = block
    let count = part.count
    part.start = block.append(UnsafeRawBufferPointer(rebasing: source.frames[part.start..<part.end]))
    part.end = part.start &+ count
    part.source = .passUnretained(block)
    let growth = block.takeGrowth().bytes
    if block.parts > 0 { dues &+= growth }
  }

  /// Copies the parts of some blocks to others, which only this queue holds.
  private mutating func copyOut(_ isLeft: (SharedBlock) -> Bool) {
    own = nil
    for place in first..<firstFresh where isLeft(parts[place].block) {
      let block = parts[place].block
      var part = parts[place]
      copy(&part, of: block)
      parts[place] = part
      dues &+= part.block.hold(by: uid)
      dues &-= block.release(by: uid)
    }
  }

  /// Copies the rest of a short block that only this queue holds and most of which was written. That of a longer one stays where
  /// it is: its user is charged with all of it.
  private mutating func leaveSpentBlock() {
    let (block, owed) = (parts[first].block, parts[first].count)
    let written = block.charge &- owed
    if block.parts > 1 || written <= Self.muchWritten || written <= owed || block.charge > Self.longBlock { return }
    copyOut { $0 === block }
  }

  /// Fewer written bytes are not worth a copy of the rest.
  private static let muchWritten = 4 << 10
  /// The rest of a longer block is not copied.
  private static let longBlock = 64 << 10
}
