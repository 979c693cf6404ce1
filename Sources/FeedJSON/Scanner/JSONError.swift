/// The reason why a text is not exactly one strict JSON value, and its position.
public struct JSONError: Error, Equatable, Sendable {
  /// The kinds of errors.
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
  /// The kind of the error.
  public var kind: Kind

  /// Creates an error of `kind` at `offset`.
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
  /// - Parameter bytes: the text with the error.
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
