/// Scans JSON texts into tapes of tokens, and reuses the tape's memory for the next text.
///
/// Accepts exactly the texts of RFC 8259 in strict UTF-8, without a byte order mark. O(n), without recursion. It allocates
/// only to enlarge the tape, which has a 16-byte token for each value and member name.
///
///     var scanner = JSONScanner()
///     let view = try scanner.scan(bytes)
///     let priority = view.member("priority")?.int
public struct JSONScanner: ~Copyable {
  /// The deepest nesting of containers that is accepted. `[[]]` has depth 2.
  public let maxDepth: Int
  private var tape: Tape?
  /// Where the scan of a text in parts was paused.
  private var pause: ScanPause?
  /// The most tokens that a text has needed since the last `releaseUnused()`.
  private var needed = 0

  /// Creates a scanner without a tape.
  public init(maxDepth: Int = 512) {
    self.maxDepth = maxDepth
  }

  deinit {
    tape?.deallocate()
  }

  /// Scans a text of exactly one JSON value, with optional white space around it.
  ///
  /// - Returns: the value. It is valid until the next scan by this scanner, and while `bytes` stay in place.
  /// - Throws: the first error of the text.
  public mutating func scan(_ bytes: UnsafeRawBufferPointer) throws(JSONError) -> JSONView {
    try scan(bytes, after: 0)
  }

  /// Scans a text like ``scan(_:)``, and keeps the first `kept` tokens of earlier texts on the tape.
  ///
  /// Views of earlier texts become invalid, because the tape can move. Save their positions with ``place(of:)`` and create
  /// them again with ``view(at:of:)``.
  public mutating func scan(_ bytes: UnsafeRawBufferPointer, after kept: Int) throws(JSONError) -> JSONView {
    assert(kept >= 0 && kept <= tokenCount, "there are fewer tokens to keep")
    guard bytes.count <= Int(UInt32.max) else { throw JSONError(offset: 0, kind: .tooLarge) }
    guard let start = bytes.baseAddress, bytes.count > 0 else { throw JSONError(offset: 0, kind: .empty) }
    guard let tape = tape ?? Tape(capacity: Self.firstCapacity) else { throw JSONError(offset: 0, kind: .tooLarge) }
    let base = start.assumingMemoryBound(to: UInt8.self)
    assert(pause == nil, "another text is scanned in part")
    var pass = ScanPass(base: base, count: bytes.count, tape: tape, after: kept, maxDepth: maxDepth)
    let accepted = pass.run()
    // The pass may have moved the tape, even if the text is refused.
    take(pass.tape)
    didWrite(pass.next - pass.tape.start)
    guard accepted else { throw JSONError(offset: pass.p - base, kind: pass.fault) }
    return JSONView(base: base, token: UnsafePointer(pass.tape.start + kept))
  }

  /// Scans a text like ``scan(_:)``, but at most about `count` tokens of it. Returns nil if the rest of the text is left: call
  /// this function again with the same bytes, which may have moved.
  ///
  ///     while try scanner.scanPart(bytes, tokens: 10_000) == nil { serveOthers() }
  ///
  /// A string is scanned at once, however long it is. Throws as ``scan(_:)`` does; the next call begins another text.
  public mutating func scanPart(_ bytes: UnsafeRawBufferPointer, tokens count: Int) throws(JSONError) -> JSONView? {
    guard bytes.count <= Int(UInt32.max) else { throw JSONError(offset: 0, kind: .tooLarge) }
    guard let start = bytes.baseAddress, bytes.count > 0 else { throw JSONError(offset: 0, kind: .empty) }
    guard let tape = tape ?? Tape(capacity: Self.firstCapacity) else { throw JSONError(offset: 0, kind: .tooLarge) }
    let base = start.assumingMemoryBound(to: UInt8.self)
    var pass = ScanPass(base: base, count: bytes.count, tape: tape, after: 0, maxDepth: maxDepth)
    let accepted = pass.run(after: pause, tokens: count)
    take(pass.tape)
    didWrite(pass.next - pass.tape.start)
    pause = pass.pause
    if pause != nil { return nil }
    guard accepted else { throw JSONError(offset: pass.p - base, kind: pass.fault) }
    return JSONView(base: base, token: UnsafePointer(pass.tape.start))
  }

  /// The tape if it has room for so many tokens.
  @inline(__always)
  func known(room: Int) -> Tape? { tape.flatMap { $0.capacity >= room ? $0 : nil } }

  /// Takes the tape of a pass, which may have moved it.
  @inline(__always)
  mutating func take(_ tape: Tape) { self.tape = tape }

  /// Records that the tape has so many tokens.
  @inline(__always)
  mutating func didWrite(_ count: Int) {
    tokenCount = count
    needed = max(needed, count)
  }

  /// The number of tokens on the tape, including the kept ones.
  public private(set) var tokenCount = 0

  /// Returns the position of a value of the last scan on the tape.
  public func place(of view: JSONView) -> Int {
    guard let tape else { return 0 }
    let place = view.token - UnsafePointer(tape.start)
    assert(place >= 0 && place < tokenCount, "the value is not on this tape")
    return place
  }

  /// Returns the value at a position of the tape.
  /// - Parameter bytes: the text that was scanned to this position, or a copy of it.
  /// - Precondition: `place` is the position of a value.
  public func view(at place: Int, of bytes: UnsafeRawBufferPointer) -> JSONView {
    guard let tape, let start = bytes.baseAddress, place < tokenCount else {
      preconditionFailure("there is no value at position \(place)")
    }
    return JSONView(base: start.assumingMemoryBound(to: UInt8.self), token: UnsafePointer(tape.start + place))
  }

  private static let firstCapacity = 64

  /// The size of a tape, in tokens, that `releaseUnused()` keeps in any case: 1 MiB.
  private static let keptCapacity = 1 << 16

  /// The bytes of a token.
  public static let tokenSize = MemoryLayout<JSONToken>.stride

  /// The number of tokens that fit without allocating.
  public var capacity: Int { tape?.capacity ?? 0 }

  /// Frees the tape if it is larger than 1 MiB and more than four times as large as the texts since the last call needed.
  /// Views of the last scan become invalid.
  ///
  /// Called periodically, it keeps the memory that a steady load needs and frees what one large text took.
  public mutating func releaseUnused() {
    releaseMemory(beyond: max(Self.keptCapacity, needed &* 4))
    needed = 0
  }

  /// Frees the tape if it has room for more than `tokens` tokens. Views of the last scan become invalid.
  public mutating func releaseMemory(beyond tokens: Int = 0) {
    guard let tape, tape.capacity > tokens else { return }
    tape.deallocate()
    self.tape = nil
    tokenCount = 0
  }
}

// The scanner owns the tape, and the views are not Sendable.
extension JSONScanner: @unchecked Sendable {}
