import Glibc

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

  public init(maxDepth: Int = 512) { self.maxDepth = maxDepth }

  deinit { tape?.deallocate() }

  /// Scans a text of exactly one JSON value, with optional white space around it.
  /// - Returns: the value. It is valid until the next scan by this scanner, and while `bytes` stay in place.
  public mutating func scan(_ bytes: UnsafeRawBufferPointer) throws(JSONError) -> JSONView { try scan(bytes, after: 0) }

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
  /// A plain string and white space are scanned at once, however long they are: white space byte by byte, a millisecond for about
  /// 128 KiB. Throws as ``scan(_:)`` does; the next call begins another text.
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
  public func view(at place: Int, of bytes: UnsafeRawBufferPointer) -> JSONView {
    guard let tape, let start = bytes.baseAddress, place < tokenCount else {
      preconditionFailure("there is no value at position \(place)")
    }
    return JSONView(base: start.assumingMemoryBound(to: UInt8.self), token: UnsafePointer(tape.start + place))
  }

  private static let firstCapacity = 64

  /// The size of a tape, in tokens, that `releaseUnused()` keeps in any case: 1 MiB.
  private static let keptCapacity = 1 << 16

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

/// The reason why a text is not exactly one strict JSON value, and its position.
public struct JSONError: Error, Equatable, Sendable {
  public enum Kind: UInt8, Sendable {
    /// A byte that is not allowed here.
    case unexpectedByte
    /// The text ends inside a value.
    case truncated
    /// Invalid UTF-8: a stray continuation byte, an overlong form, a surrogate, or a code point above U+10FFFF.
    case invalidUTF8
    /// Not a number as RFC 8259, section 6, defines it.
    case invalidNumber
    /// An unescaped control character in a string.
    case invalidString
    /// A backslash that does not begin an escape.
    case invalidEscape
    /// Containers nested deeper than the scanner's limit.
    case tooDeep
    /// Text after the value.
    case trailingBytes
    /// No value: empty, or white space only.
    case empty
    /// Longer than 32-bit offsets can address, or out of memory.
    case tooLarge
  }

  /// The offset of the offending byte; the length of the text if it is truncated.
  public var offset: Int
  public var kind: Kind

  public init(offset: Int, kind: Kind) {
    self.offset = offset
    self.kind = kind
  }

  /// The reason in words, without the offset.
  public var message: String {
    switch kind {
    case .unexpectedByte: "unexpected byte"
    case .truncated: "the text ends inside a value"
    case .invalidUTF8: "invalid UTF-8"
    case .invalidNumber: "invalid number"
    case .invalidString: "unescaped control character in a string"
    case .invalidEscape: "invalid escape in a string"
    case .tooDeep: "arrays and objects are nested too deeply"
    case .trailingBytes: "unexpected text after the value"
    case .empty: "no value"
    case .tooLarge: "the text is longer than 4 GiB"
    }
  }

  /// The reason in words, which names a byte order mark and a zero byte: a terminal shows neither.
  public func message(in bytes: UnsafeRawBufferPointer) -> String {
    guard kind == .unexpectedByte || kind == .trailingBytes, offset < bytes.count else { return message }
    let rest = UnsafeRawBufferPointer(rebasing: bytes[offset...])
    if ByteOrderMark.length(atStartOf: rest) > 0 { return "unexpected byte order mark (U+FEFF)" }
    return rest[0] == 0 ? "unexpected zero byte" : message
  }
}

/// The byte order mark U+FEFF in UTF-8. Editors write it at the beginning of files; JSON does not allow it anywhere outside
/// strings (RFC 8259, section 8.1, lets a reader skip it at the beginning).
public enum ByteOrderMark {
  private static let bytes: [UInt8] = [0xEF, 0xBB, 0xBF]

  /// The length of the mark at the beginning of a text; 0 if there is none.
  public static func length(atStartOf text: UnsafeRawBufferPointer) -> Int {
    text.starts(with: bytes) ? bytes.count : 0
  }

  /// Whether a text is a proper beginning of the mark, so that more bytes tell whether it is there.
  public static func isBegun(by text: UnsafeRawBufferPointer) -> Bool {
    text.count < bytes.count && bytes.starts(with: text)
  }
}

/// The kind of a JSON value (RFC 8259, section 3).
///
/// The raw values ascend in the order in which sort keys of different kinds are sorted: null < false < true < numbers <
/// strings < arrays and objects.
@frozen public enum JSONKind: UInt8, Sendable {
  case null, `false`, `true`, number, string, array, object
}

/// A value or member name of a scanned text: one 16-byte entry of the tape.
///
/// The tape is in document order. A container is followed by its contents. In an object, names and values alternate.
@frozen public struct JSONToken {
  /// The offset of the first byte in the scanned text.
  public var offset: UInt32
  /// The length in bytes, including quotes or brackets.
  public var length: UInt32
  /// The number of tokens of this subtree, including this one: the next sibling is `span` tokens further.
  public var span: UInt32
  /// The kind in bits 0–2, flags in bits 3–5, the number of members or elements, saturated, in bits 8–31.
  public var info: UInt32

  @inlinable init(offset: UInt32, length: UInt32, span: UInt32, info: UInt32) {
    self.offset = offset
    self.length = length
    self.span = span
    self.info = info
  }

  /// The bits of `info` with the kind.
  @usableFromInline static let kindMask: UInt32 = 7
  /// Flag of a string with at least one escape.
  @usableFromInline static let hasEscapes: UInt32 = 1 << 3
  /// Flag of a container with white space outside strings.
  @usableFromInline static let hasSpaces: UInt32 = 1 << 4
  /// Flag of a number without fraction and exponent.
  @usableFromInline static let isPlainInteger: UInt32 = 1 << 5
  @usableFromInline static let countShift: UInt32 = 8
  /// The largest count that fits. It means "this many or more".
  @usableFromInline static let countLimit: UInt32 = (1 << 24) - 1
}

/// The memory of a tape, not owned. A text has less than one token a byte, so indexes fit in 32 bits.
struct Tape {
  let start: UnsafeMutablePointer<JSONToken>
  /// The last position with room for two more tokens.
  let lastPair: UnsafeMutablePointer<JSONToken>

  /// The number of tokens that fit.
  var capacity: Int { lastPair - start &+ 2 }

  /// Allocates memory; nil if there is none.
  init?(capacity: Int) { self.init(resizing: nil, used: 0, capacity) }

  private init?(resizing old: UnsafeMutablePointer<JSONToken>?, used: Int, _ capacity: Int) {
    guard let block = realloc(old, capacity &* MemoryLayout<JSONToken>.stride) else { return nil }
    start = block.assumingMemoryBound(to: JSONToken.self)
    // Tokens of earlier texts are read as predictions, so new memory is initialized.
    (start + used).initialize(repeating: JSONToken(offset: 0, length: 0, span: 1, info: 0), count: capacity &- used)
    lastPair = start + (capacity &- 2)
  }

  /// The most tokens that a tape grows by: 1 MiB, because the first access to memory takes long.
  private static let longestStep = 1 << 16

  /// Moves the tokens to more memory, twice as much for a short tape. Returns nil, and this tape stays valid, if there is none.
  @inline(never)
  func enlarged() -> Tape? { Tape(resizing: start, used: capacity, capacity &+ min(capacity, Self.longestStep)) }
  func deallocate() { free(start) }
}
