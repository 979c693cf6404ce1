import Glibc

/// The kind of a JSON value (RFC 8259, section 3).
///
/// The raw values ascend in the order in which sort keys of different kinds are sorted: null < false < true < numbers <
/// strings < arrays and objects.
@frozen public enum JSONKind: UInt8, Sendable {
  case null
  case `false`
  case `true`
  case number
  case string
  case array
  case object
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
  /// The first token.
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

  /// Frees the memory.
  func deallocate() { free(start) }
}
