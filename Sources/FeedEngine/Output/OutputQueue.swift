import FeedJSON

/// The unwritten output of one connection: bytes kept from earlier turns, then pieces of this turn's shared buffers.
///
/// Bytes are encoded once and written from the shared buffer. Bytes that are not written by the end of the turn are
/// copied into the connection's own memory, so a slow reader retains no shared buffer; a connection that has most of a
/// large buffer takes it over instead.
///
/// Invariant: `fresh` is the number of bytes in the pieces from `firstPiece` on.
struct OutputQueue: ~Copyable {
  /// A part of a buffer of this turn.
  struct Piece {
    let source: Unmanaged<TurnBuffer>
    var start: Int
    var end: Int
  }

  private var kept = ByteBuffer()
  private var keptStart = 0
  private var pieces: [Piece] = []
  private var firstPiece = 0
  /// The number of bytes in the pieces.
  private var fresh = 0
  /// The number of unwritten bytes of the first frame; 0 if the last write ended at the end of a frame.
  private var frameRest = 0
  /// Whether output is left that is written when the connection is reported as writable. Set by the turn, which writes.
  var isBlocked = false

  /// The number of bytes from earlier turns.
  var backlog: Int { kept.count &- keptStart }
  /// The number of unwritten bytes.
  var count: Int { backlog &+ fresh }
  /// The number of bytes that were written and whose memory is not free yet, because later bytes are not written.
  var spent: Int { backlog > 0 ? keptStart : 0 }

  /// Queues part of a buffer of this turn. Extends the last piece if the part continues it. O(1).
  mutating func append(_ source: TurnBuffer, from start: Int, to end: Int) {
    fresh &+= end &- start
    let source = Unmanaged.passUnretained(source)
    let last = pieces.count &- 1
    if last >= firstPiece, pieces[last].end == start, pieces[last].source.toOpaque() == source.toOpaque() {
      pieces[last].end = end
    } else {
      pieces.append(Piece(source: source, start: start, end: end))
    }
  }

  /// Queues all bytes of a buffer, whole frames. Takes their memory if nothing else is queued; otherwise copies them.
  mutating func append(taking source: TurnBuffer) {
    guard count == 0 else { return append(copyOf: source.bytes.bytes) }
    keepRest()
    swap(&kept, &source.bytes)
    source.bytes.removeAll(keepingCapacity: false)
  }

  /// Queues a copy of whole frames.
  mutating func append(copyOf frames: UnsafeRawBufferPointer) {
    keepRest()
    kept.append(frames)
  }

  /// Fills `slices` with the unwritten bytes, in order. Returns the number of slices.
  func gather(into slices: UnsafeMutableBufferPointer<UnsafeRawBufferPointer>) -> Int {
    var used = 0
    if backlog > 0 && slices.count > 0 {
      slices[0] = UnsafeRawBufferPointer(rebasing: kept.bytes[keptStart...])
      used = 1
    }
    var next = firstPiece
    while next < pieces.count && used < slices.count {
      let piece = pieces[next]
      slices[used] = piece.source._withUnsafeGuaranteedRef {
        UnsafeRawBufferPointer(start: $0.bytes.pointer + piece.start, count: piece.end &- piece.start)
      }
      used &+= 1
      next &+= 1
    }
    return used
  }

  /// Removes the first `count` bytes, which were written.
  ///
  /// O(1) if these are all bytes, otherwise O(frames and pieces written), to find the end of the current frame.
  mutating func consume(_ count: Int) {
    if count == self.count { frameRest = 0 } else { findFrame(after: count) }
    let fromKept = min(count, backlog)
    keptStart &+= fromKept
    var rest = count &- fromKept
    fresh &-= rest
    while rest > 0 && firstPiece < pieces.count {
      let length = pieces[firstPiece].end &- pieces[firstPiece].start
      if rest < length {
        pieces[firstPiece].start &+= rest
        return
      }
      rest &-= length
      firstPiece &+= 1
    }
  }

  /// Discards everything except the rest of a frame whose beginning was written.
  mutating func dropWholeFrames() {
    kept.truncate(to: keptStart &+ min(frameRest, backlog))
    compactKept()
    pieces.removeAll(keepingCapacity: true)
    firstPiece = 0
    fresh = 0
  }

  /// Discards everything.
  mutating func removeAll() {
    consume(count)
    keepRest()
  }

  /// Sets `frameRest` for a write that ends at `offset`, before the end of the output.
  private mutating func findFrame(after offset: Int) {
    var next = frameRest
    var reached = (piece: firstPiece, start: backlog)
    while next < offset {
      var length: UInt32 = 0
      for place in next..<(next &+ 4) { length = length << 8 | UInt32(byte(at: place, &reached)) }
      next &+= 4 &+ Int(length)
    }
    frameRest = next &- offset
  }

  /// Returns the byte at an offset.
  ///
  /// - Precondition: the offsets of successive calls ascend.
  /// - Parameter reached: the piece that was read last, and the offset at which it begins.
  private func byte(at offset: Int, _ reached: inout (piece: Int, start: Int)) -> UInt8 {
    if offset < backlog { return kept.bytes[keptStart &+ offset] }
    while reached.piece < pieces.count {
      let piece = pieces[reached.piece]
      let inside = piece.start &+ offset &- reached.start
      if inside < piece.end { return piece.source._withUnsafeGuaranteedRef { $0.bytes.bytes[inside] } }
      reached = (reached.piece &+ 1, reached.start &+ piece.end &- piece.start)
    }
    return 0
  }

  /// Whether the unwritten output is one large part of `source` that fills at least half of its memory, so that
  /// ``take(_:)`` costs less than a copy and wastes little.
  func isMost(of source: TurnBuffer, atLeast least: Int = largePart) -> Bool {
    guard fresh >= least, backlog == 0, firstPiece &+ 1 == pieces.count else { return false }
    return pieces[firstPiece].source.toOpaque() == Unmanaged.passUnretained(source).toOpaque()
      && fresh &* 2 >= source.bytes.capacity
  }

  /// Takes the memory of `source` with the unwritten output, which is not copied. `source` is empty then. O(1).
  /// - Precondition: ``isMost(of:)``, and no other connection has unwritten output in `source`.
  mutating func take(_ source: TurnBuffer) {
    assert(isMost(of: source, atLeast: 0))
    let piece = pieces[firstPiece]
    kept.removeAll(keepingCapacity: true)
    swap(&kept, &source.bytes)
    kept.truncate(to: piece.end)
    keptStart = piece.start
    pieces.removeAll(keepingCapacity: true)
    firstPiece = 0
    fresh = 0
  }

  /// Memory that a connection keeps whatever it holds.
  private static let smallMemory = 64 << 10

  /// The smallest output that is not copied.
  private static let largePart = 1 << 20

  /// Copies the unwritten rest of this turn's pieces into the connection's own memory.
  mutating func keepRest() {
    if keptStart == kept.count {
      kept.removeAll(keepingCapacity: kept.capacity <= Self.smallMemory)
      keptStart = 0
    }
    // The rest of a long answer stays where it is: it is charged with all of its memory.
    if fresh > 0 || kept.capacity <= Self.smallMemory { compactKept() }
    if fresh > 0 {
      for piece in pieces[firstPiece...] {
        piece.source._withUnsafeGuaranteedRef {
          kept.append(UnsafeRawBufferPointer(start: $0.bytes.pointer + piece.start, count: piece.end &- piece.start))
        }
      }
    }
    pieces.removeAll(keepingCapacity: pieces.capacity <= 4096)
    firstPiece = 0
    fresh = 0
  }

  /// Moves the kept bytes to the front if more than half of them were written, and to smaller memory if they fill little of
  /// it.
  private mutating func compactKept() {
    if keptStart > 4096, keptStart &* 2 > kept.count {
      kept.removeFirst(keptStart)
      keptStart = 0
    }
    guard kept.capacity > Self.smallMemory, kept.capacity / 2 > kept.count else { return }
    var smaller = ByteBuffer(capacity: backlog)
    smaller.append(UnsafeRawBufferPointer(rebasing: kept.bytes[keptStart...]))
    swap(&kept, &smaller)
    keptStart = 0
  }
}

extension ByteBuffer {
  /// Removes the first `count` bytes. O(bytes left).
  fileprivate mutating func removeFirst(_ count: Int) {
    let left = self.count &- count
    UnsafeMutableRawPointer(pointer).copyMemory(from: pointer + count, byteCount: left)
    truncate(to: left)
  }
}
