/// Finds the end of a JSON value byte by byte, and most errors in it. A scanner checks the rest.
///
/// Stops at the first byte that cannot continue the structure, so that an incomplete value is detected at the beginning
/// of the next value, not at the end of the input.
struct ValueOutline {
  enum Outcome: Equatable {
    /// The length of the value in bytes.
    case complete(Int)
    case incomplete
    /// The offset of a byte that cannot continue a JSON value.
    case malformed(Int)
  }

  private enum Expectation {
    case value
    case valueOrEnd
    case nameOrEnd
    case name
    case colon
    case commaOrEnd
  }

  /// The deepest nesting that is followed, which bounds the memory. Deeper values are malformed.
  private static let maxDepth = 1 << 20

  /// The number of processed bytes.
  private var offset = 0
  private var expectation = Expectation.value
  /// The open brackets; true for an object.
  private var open: [Bool] = []
  private var isInString = false
  private var isEscaped = false
  private var isInWord = false

  init() {}

  /// Processes the bytes after those of the last call.
  /// - Parameter bytes: the value from its beginning.
  mutating func advance(_ bytes: UnsafeRawBufferPointer) -> Outcome {
    while offset < bytes.count {
      let byte = bytes[offset]
      if isInString {
        if isEscaped {
          isEscaped = false
        } else if byte == UInt8(ascii: "\\") {
          isEscaped = true
        } else if byte == UInt8(ascii: "\"") {
          isInString = false
          offset += 1
          if endValue() { return .complete(offset) }
          continue
        } else if byte < 0x20 {
          return .malformed(offset)
        }
        offset += 1
        continue
      }
      if isInWord {
        if Self.isWord(byte) {
          offset += 1
          continue
        }
        isInWord = false
        if endValue() { return .complete(offset) }
        continue
      }
      if byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 {
        offset += 1
        continue
      }
      guard take(byte) else { return .malformed(offset) }
      offset += 1
      if open.isEmpty, !isInString, !isInWord { return .complete(offset) }
    }
    return .incomplete
  }

  /// Removes bytes that were processed from the beginning of the value: the next call of ``advance(_:)`` gets the rest.
  mutating func didDiscard(_ count: Int) { offset -= count }

  /// Ends a string or a word. Returns whether it was the whole value.
  private mutating func endValue() -> Bool {
    expectation = expectation == .name || expectation == .nameOrEnd ? .colon : .commaOrEnd
    return open.isEmpty
  }

  /// Processes a byte outside strings and words. Returns false if it is invalid.
  private mutating func take(_ byte: UInt8) -> Bool {
    switch (byte, expectation) {
    case (UInt8(ascii: "\""), .value), (UInt8(ascii: "\""), .valueOrEnd), (UInt8(ascii: "\""), .name),
      (UInt8(ascii: "\""), .nameOrEnd):
      isInString = true
    case (UInt8(ascii: "{"), .value), (UInt8(ascii: "{"), .valueOrEnd):
      guard open.count < Self.maxDepth else { return false }
      open.append(true)
      expectation = .nameOrEnd
    case (UInt8(ascii: "["), .value), (UInt8(ascii: "["), .valueOrEnd):
      guard open.count < Self.maxDepth else { return false }
      open.append(false)
      expectation = .valueOrEnd
    case (UInt8(ascii: "}"), .nameOrEnd), (UInt8(ascii: "}"), .commaOrEnd):
      guard open.popLast() == true else { return false }
      expectation = .commaOrEnd
    case (UInt8(ascii: "]"), .valueOrEnd), (UInt8(ascii: "]"), .commaOrEnd):
      guard open.popLast() == false else { return false }
      expectation = .commaOrEnd
    case (UInt8(ascii: ":"), .colon): expectation = .value
    case (UInt8(ascii: ","), .commaOrEnd):
      guard let isObject = open.last else { return false }
      expectation = isObject ? .name : .value
    case (_, .value), (_, .valueOrEnd):
      guard Self.isWord(byte) else { return false }
      isInWord = true
    default: return false
    }
    return true
  }

  /// Whether a value may begin with a byte.
  static func beginsValue(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "{") || byte == UInt8(ascii: "[") || byte == UInt8(ascii: "\"") || isWord(byte)
  }

  /// Whether a byte may be part of a number or of `true`, `false` and `null`.
  private static func isWord(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."):
      true
    default: false
    }
  }
}
