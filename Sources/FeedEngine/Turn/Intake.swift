import FeedModel
import FeedWire

/// Input of one connection: what was received and not decoded yet.
struct SessionInput {
  /// The beginning of a frame, or whole frames that cannot be taken yet.
  var held = InputBuffer()
  /// Since when half a frame has been waiting for its rest; nil when there is none.
  var partialSince: Instant?
  /// Bytes of the half frame when `partialSince` was set.
  private var partialBytes = 0
  private var flags: UInt8 = 0

  /// The peer sends nothing more.
  var hasEnded: Bool {
    get { flags & 1 != 0 }
    set { set(1, newValue) }
  }
  /// The peer reads nothing more: what is queued for it is discarded, what it sent is still executed.
  var isDeaf: Bool {
    get { flags & 2 != 0 }
    set { set(2, newValue) }
  }
  /// It is not read from, because its requests cannot be taken now.
  var isPaused: Bool {
    get { flags & 4 != 0 }
    set { set(4, newValue) }
  }
  /// This turn decodes some of its input.
  var isTaken: Bool {
    get { flags & 8 != 0 }
    set { set(8, newValue) }
  }
  /// Listed as a connection that may be over at the end of the turn.
  var isNoted: Bool {
    get { flags & 16 != 0 }
    set { set(16, newValue) }
  }

  private mutating func set(_ bit: UInt8, _ isOn: Bool) {
    if isOn { flags |= bit } else { flags &= ~bit }
  }

  /// Remembers since when half a frame makes no progress.
  mutating func notePartial(_ bytes: Int, now: Instant) {
    if partialSince == nil || partialBytes != bytes {
      partialSince = now
      partialBytes = bytes
    }
  }
}

/// The bytes that a turn received, one connection behind the other, and whose they are.
///
/// What is not decoded in the turn is kept in the ``SessionInput`` of its connection. Invariant: each byte is in this memory or
/// in one held buffer, never in both.
struct Intake: ~Copyable {
  /// Bytes of one connection that a turn decodes.
  struct Piece {
    let session: SessionHandle
    /// Where in the turn's memory they lie; nil: in the held buffer of the connection.
    let range: Range<Int>?
  }

  private let memory: UnsafeMutableRawBufferPointer
  private var used = 0
  private(set) var pieces: [Piece] = []

  /// Bytes read from one connection in a turn, so that a fast sender does not delay the others.
  static let bytesPerTurn = 64 << 10
  /// Bytes read from all connections in a turn, longer frames excepted.
  static let turnCapacity = 1 << 20
  /// The longest beginning of a frame that is copied in front of what is read next. A longer one is read to where it lies.
  static let shortInput = 4096

  init() {
    memory = .allocate(byteCount: Self.turnCapacity, alignment: 4096)
  }

  deinit { memory.deallocate() }

  /// Where to read what a connection sent; nil when the turn has no room left for it. Leaves a gap for the held bytes.
  func space(behind held: Int) -> UnsafeMutableRawBufferPointer? {
    let start = used &+ held
    let end = min(used &+ Self.bytesPerTurn, Self.turnCapacity)
    guard end - start >= Self.shortInput else { return nil }
    return UnsafeMutableRawBufferPointer(rebasing: memory[start..<end])
  }

  /// So many bytes of a connection were read into ``space(behind:)``; the held bytes move in front of them.
  mutating func didRead(_ count: Int, of session: Session) {
    let held = session.input.held.count
    let start = used &+ held
    if held > 0 {
      UnsafeMutableRawBufferPointer(rebasing: memory[used..<start]).copyMemory(from: session.input.held.bytes)
      session.input.held.removeAll()
    }
    take(session, used..<(start &+ count))
    used = start &+ count
    assert(used <= Self.turnCapacity)
  }

  /// Lists the held bytes of a connection for this turn.
  mutating func takeHeld(_ session: Session) { take(session, nil) }

  private mutating func take(_ session: Session, _ range: Range<Int>?) {
    assert(!session.input.isTaken)
    session.input.isTaken = true
    pieces.append(Piece(session: session.handle, range: range))
  }

  /// The bytes of a piece. Valid until the connection's held buffer changes.
  func bytes(of piece: Piece, _ session: Session) -> UnsafeRawBufferPointer {
    guard let range = piece.range else { return session.input.held.bytes }
    return UnsafeRawBufferPointer(rebasing: memory[range])
  }

  /// Keeps what was not decoded of a piece.
  func keepRest(of piece: Piece, _ session: Session, decoded count: Int) {
    if let range = piece.range {
      session.input.held.replace(
        UnsafeRawBufferPointer(rebasing: memory[(range.lowerBound &+ count)..<range.upperBound]))
    } else {
      session.input.held.removeFirst(count)
    }
  }

  /// Forgets the turn's input.
  mutating func removeAll() {
    pieces.removeAll(keepingCapacity: true)
    used = 0
  }
}
