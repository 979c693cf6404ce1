import FeedModel
import FeedWire
import Glibc

/// The received and undecoded input of one connection.
struct SessionInput {
  /// An incomplete frame, or whole frames that cannot be taken yet.
  var held = InputBuffer()
  /// The time since which an incomplete frame has made no progress; nil if there is none.
  var partialSince: Instant?
  /// The bytes of the incomplete frame when `partialSince` was set.
  private var partialBytes = 0
  /// The peer sends no more input.
  var hasEnded = false
  /// The peer stopped reading: its output is discarded, its received requests are still executed.
  var isDeaf = false
  /// The connection is not read, because its requests cannot be taken now.
  var isPaused = false
  /// This turn decodes some of the input.
  var isInTurn = false
  /// The connection is listed as one that may be finished at the end of the turn.
  var isNoted = false
  /// The connection is in the queue of those whose input a turn takes.
  var isQueued = false

  /// Records the progress of an incomplete frame.
  mutating func notePartial(_ bytes: Int, now: Instant) {
    if partialSince == nil || partialBytes != bytes {
      partialSince = now
      partialBytes = bytes
    }
  }
}

/// The bytes that a turn received, one connection after another.
///
/// Bytes that the turn does not decode are kept in the ``SessionInput`` of their connection. Invariant: each byte is
/// either in this memory or in one held buffer, never in both.
package struct Intake: ~Copyable {
  /// The bytes of one connection that a turn decodes.
  struct Piece {
    let session: SessionHandle
    /// The range in the turn's memory; nil if the bytes are in the held buffer of the connection.
    let range: Range<Int>?
  }

  private let memory: UnsafeMutableRawBufferPointer
  private var used = 0
  private(set) var pieces: [Piece] = []
  /// The bytes that the turn may still take.
  private(set) var room = turnCapacity

  /// The maximum bytes of short requests that a turn takes from one connection, so that a fast sender does not delay the others.
  package static let bytesPerTurn = 96 << 10
  /// The same for a turn that costs little besides its requests: the sender prepares more while the turn executes.
  private static let bytesOfCheapTurn = 64 << 10
  /// The maximum bytes that a turn takes from all connections. Requests of so many bytes are executed within a few milliseconds.
  package static let turnCapacity = 128 << 10
  /// The length from which frames are long. A turn may take more bytes of a connection whose frames are long: a byte of theirs
  /// takes less time than one of short requests.
  static let longFrame = 4096
  /// The bytes that must be left for another connection.
  private static let least = 8192
  /// The maximum length of an incomplete frame that is copied in front of new input, while the turn has room. If its bytes come
  /// one by one, each costs two such copies, about four microseconds.
  private static let mostHeld = 32 << 10

  init() { memory = .allocate(byteCount: Self.turnCapacity, alignment: 4096) }

  deinit { memory.deallocate() }

  /// Whether the turn can take input of another connection.
  var hasRoom: Bool { room >= Self.least }

  /// The bytes of short requests that the turn may take from one connection.
  private var share: Int { min(room, Self.bytesPerTurn) }

  /// Whether so many held bytes are copied in front of new input. A longer incomplete frame is read into its held buffer.
  func fits(held: Int) -> Bool { held <= min(Self.mostHeld, room / 2) }

  /// Returns memory to read the input of a connection into, after a gap for its held bytes: its share of the turn.
  /// - Parameter isCheap: whether the turn costs little besides its requests, so that a smaller share is as fast.
  /// - Precondition: the turn has room, and ``fits(held:)``.
  func space(behind held: Int, isCheap: Bool) -> UnsafeMutableRawBufferPointer {
    let share = isCheap ? min(room, Self.bytesOfCheapTurn) : share
    return UnsafeMutableRawBufferPointer(rebasing: memory[(used &+ held)..<(used &+ share)])
  }

  /// Returns memory for more of the input of a connection, after so many bytes of it: all that the turn may take. Nil if there
  /// is no more.
  func rest(behind taken: Int) -> UnsafeMutableRawBufferPointer? {
    taken < room ? UnsafeMutableRawBufferPointer(rebasing: memory[(used &+ taken)..<(used &+ room)]) : nil
  }

  /// Adds bytes that were read into ``space(behind:isCheap:)``, and moves the held bytes in front of them.
  mutating func didRead(_ count: Int, of session: Session) {
    let held = session.input.held.count
    let start = used &+ held
    if held > 0 {
      UnsafeMutableRawBufferPointer(rebasing: memory[used..<start]).copyMemory(from: session.input.held.bytes)
      session.input.held.removeAll()
    }
    let range = used..<(start &+ count)
    used = range.upperBound
    add(session, range, count: range.count)
  }

  /// Adds the held bytes of a connection to this turn's input, of which so many were read in this turn.
  mutating func addHeld(_ session: Session, read count: Int) { add(session, nil, count: count) }

  /// Adds the held bytes of a connection, which were read before, to this turn's input.
  mutating func addHeld(_ session: Session) { add(session, nil, count: min(session.input.held.count, share)) }

  private mutating func add(_ session: Session, _ range: Range<Int>?, count: Int) {
    assert(!session.input.isInTurn)
    room &-= count
    assert(room >= 0 && used <= Self.turnCapacity)
    session.input.isInTurn = true
    pieces.append(Piece(session: session.handle, range: range))
  }

  /// The bytes of a piece. Valid until the connection's held buffer changes.
  func bytes(of piece: Piece, _ session: Session) -> UnsafeRawBufferPointer {
    guard let range = piece.range else { return session.input.held.bytes }
    return UnsafeRawBufferPointer(rebasing: memory[range])
  }

  /// Keeps the undecoded rest of a piece.
  func keepRest(of piece: Piece, _ session: Session, decoded count: Int) {
    if let range = piece.range {
      session.input.held.replace(
        UnsafeRawBufferPointer(rebasing: memory[(range.lowerBound &+ count)..<range.upperBound]))
    } else {
      session.input.held.removeFirst(count)
    }
  }

  /// Clears the turn's input.
  mutating func removeAll() {
    pieces.removeAll(keepingCapacity: true)
    used = 0
    room = Self.turnCapacity
  }
}

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

  /// Returns the memory, and keeps only the bytes after the first `taken`, of which there is at least one. The caller owns the
  /// memory; it was allocated by `realloc`. O(bytes left).
  mutating func takeFirst(_ taken: Int) -> UnsafeMutableRawBufferPointer {
    precondition(taken > 0 && taken <= count)
    var rest = InputBuffer()
    rest.replace(UnsafeRawBufferPointer(rebasing: bytes[taken...]))
    swap(&self, &rest)
    return UnsafeMutableRawBufferPointer(start: rest.start, count: rest.capacity)
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

/// A place in the input of a connection some frames ahead of the frame that is decoded.
struct FramesAhead {
  /// The frames between the two places.
  private var count = 0
  private var offset = 0

  /// Lets a collection look at coming frames, each once. Called before each frame is decoded.
  /// - Parameter start: the start of the frame that is decoded.
  @inline(__always)
  mutating func look(in bytes: UnsafeRawBufferPointer, from start: Int, of collection: CollectionKind) {
    count = max(0, count &- 1)
    if offset < start { offset = start }
    while count < CollectionKind.lookahead, offset &+ Frame.headerLength < bytes.count {
      let rest = UnsafeRawBufferPointer(rebasing: bytes[offset...])
      guard case .complete(let payload) = Frame.first(in: rest, maxFrame: .max) else { return }
      collection.lookAhead(at: payload)
      offset &+= Frame.headerLength &+ payload.count
      count &+= 1
    }
  }
}
