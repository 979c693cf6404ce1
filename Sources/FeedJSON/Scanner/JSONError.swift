/// Why a text is not the one strict JSON value that was expected, and where.
public struct JSONError: Error, Equatable, Sendable {
  /// What is wrong at `offset`.
  public enum Kind: UInt8, Sendable {
    /// A byte that cannot stand here.
    case unexpectedByte
    /// The text ends inside a value.
    case truncated
    /// Not UTF-8: a stray continuation byte, an overlong form, a surrogate, or a code point beyond U+10FFFF.
    case invalidUTF8
    /// Not a number of RFC 8259, section 6.
    case invalidNumber
    /// A control character inside a string.
    case invalidString
    /// A reverse solidus followed by something that is no escape.
    case invalidEscape
    /// More containers inside each other than the scanner's limit.
    case tooDeep
    /// Something follows the value.
    case trailingBytes
    /// Nothing but white space.
    case empty
    /// Longer than offsets of 32 bits reach.
    case tooLarge
  }

  /// Offset of the offending byte in the text; the length of the text when it ended too early.
  public var offset: Int
  /// What is wrong there.
  public var kind: Kind

  /// An error of that kind at that offset.
  public init(offset: Int, kind: Kind) {
    self.offset = offset
    self.kind = kind
  }

  /// A sentence for people, without the offset.
  public var message: String {
    switch kind {
    case .unexpectedByte: "unexpected byte"
    case .truncated: "the text ends inside a value"
    case .invalidUTF8: "the bytes are not UTF-8"
    case .invalidNumber: "not a JSON number"
    case .invalidString: "a control character in a string has to be escaped"
    case .invalidEscape: "unknown escape in a string"
    case .tooDeep: "arrays and objects are nested too deeply"
    case .trailingBytes: "there is more than one value"
    case .empty: "there is no value"
    case .tooLarge: "the text is longer than 4 GiB"
    }
  }
}
