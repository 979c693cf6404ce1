import Glibc

/// What a JSON value is (RFC 8259, section 3). The raw values ascend in the order in which feeds sort values of
/// different kinds: null < false < true < numbers < strings < arrays and objects.
@frozen public enum JSONKind: UInt8, Sendable {
  case null
  case `false`
  case `true`
  case number
  case string
  case array
  case object
}

/// One value (or member name) of a scanned text: an entry of the tape, 16 bytes.
///
/// The tape is in document order. A container is followed by everything inside it; in an object, names and values
/// alternate.
@frozen public struct JSONToken {
  /// Offset of the first byte in the scanned text.
  public var offset: UInt32
  /// Length in bytes, with the quotes of a string or the brackets of a container.
  public var length: UInt32
  /// Number of tokens in this subtree, this one included: the next sibling is `span` tokens further on.
  public var span: UInt32
  /// Kind in bits 0–2, flags in bits 3–5, number of members or elements in bits 8–31 (saturated).
  public var info: UInt32

  @inlinable init(offset: UInt32, length: UInt32, span: UInt32, info: UInt32) {
    self.offset = offset
    self.length = length
    self.span = span
    self.info = info
  }

  /// Bits of `info` that hold the kind.
  @usableFromInline static let kindMask: UInt32 = 7
  /// A string that holds at least one escape.
  @usableFromInline static let hasEscapes: UInt32 = 1 << 3
  /// A container with white space outside strings.
  @usableFromInline static let hasSpaces: UInt32 = 1 << 4
  /// A number without fraction and exponent.
  @usableFromInline static let isPlainInteger: UInt32 = 1 << 5
  @usableFromInline static let countShift: UInt32 = 8
  /// The largest count that fits; it means "this many or more".
  @usableFromInline static let countLimit: UInt32 = (1 << 24) - 1
}

/// The memory of a tape, not owned. A text has at most a token for every two bytes and every open container, so that
/// indices fit in 32 bits.
struct Tape {
  /// The first token.
  let start: UnsafeMutablePointer<JSONToken>
  /// Where two more tokens fit, but no third.
  let lastPair: UnsafeMutablePointer<JSONToken>

  /// Tokens that fit.
  var capacity: Int { lastPair - start &+ 2 }

  /// Takes memory; nil when there is none.
  init?(capacity: Int) {
    self.init(resizing: nil, used: 0, capacity)
  }

  private init?(resizing old: UnsafeMutablePointer<JSONToken>?, used: Int, _ capacity: Int) {
    guard let block = realloc(old, capacity &* MemoryLayout<JSONToken>.stride) else { return nil }
    start = block.assumingMemoryBound(to: JSONToken.self)
    // What is there before the first text is read as well, as a prediction.
    (start + used).initialize(repeating: JSONToken(offset: 0, length: 0, span: 1, info: 0), count: capacity &- used)
    lastPair = start + (capacity &- 2)
  }

  /// The same tokens in twice the memory, which replaces this one; nil, and this one stays, when there is none.
  @inline(never)
  func doubled() -> Tape? {
    Tape(resizing: start, used: capacity, capacity &* 2)
  }

  /// Gives the memory back.
  func deallocate() {
    free(start)
  }
}
