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
