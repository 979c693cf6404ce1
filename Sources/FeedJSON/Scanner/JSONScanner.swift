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

  /// Validates one JSON text and writes its tokens behind the first `kept` ones of the texts scanned before, which stay.
  ///
  /// The tape may move: views of earlier texts end. Note their places with ``place(of:)`` and make them anew with
  /// ``view(at:of:)``.
  public mutating func scan(_ bytes: UnsafeRawBufferPointer, after kept: Int) throws(JSONError) -> JSONView {
    assert(kept >= 0 && kept <= tokenCount)
    guard bytes.count <= Int(UInt32.max) else { throw JSONError(offset: 0, kind: .tooLarge) }
    guard let start = bytes.baseAddress, bytes.count > 0 else { throw JSONError(offset: 0, kind: .empty) }
    guard let tape = tape ?? Tape(capacity: Self.firstCapacity) else { throw JSONError(offset: 0, kind: .tooLarge) }
    let base = start.assumingMemoryBound(to: UInt8.self)
    var pass = ScanPass(base: base, count: bytes.count, tape: tape, after: kept, maxDepth: maxDepth)
    let accepted = pass.run()
    // The pass may have moved the tape, even if the text is refused.
    self.tape = pass.tape
    tokenCount = pass.next - pass.tape.start
    needed = max(needed, tokenCount)
    guard accepted else { throw JSONError(offset: pass.p - base, kind: pass.fault) }
    return JSONView(base: base, token: UnsafePointer(pass.tape.start + kept))
  }

  /// Tokens on the tape after the last scan, those kept before it included.
  public private(set) var tokenCount = 0

  /// Where a value of the last scan is on the tape.
  public func place(of view: JSONView) -> Int {
    guard let tape else { return 0 }
    let place = view.token - UnsafePointer(tape.start)
    assert(place >= 0 && place < tokenCount)
    return place
  }

  /// The value at a place of the tape, in a text that was scanned to there; `bytes` may be a copy of the text.
  public func view(at place: Int, of bytes: UnsafeRawBufferPointer) -> JSONView {
    guard let tape, let start = bytes.baseAddress, place < tokenCount else {
      preconditionFailure("no value was scanned to this place")
    }
    return JSONView(base: start.assumingMemoryBound(to: UInt8.self), token: UnsafePointer(tape.start + place))
  }

  private static let firstCapacity = 64

  /// The size of a tape, in tokens, that `releaseUnused()` keeps in any case: 1 MiB.
  private static let keptCapacity = 1 << 16

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
