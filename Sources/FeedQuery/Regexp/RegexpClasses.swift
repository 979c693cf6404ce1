/// An escape: a backslash and the characters that belong to it.
enum RegexpEscape {
  /// A character, which can also begin or end a range.
  case character(UInt32)
  /// `\p{…}` or `\P{…}`.
  case category(CodePointSet)

  var set: CodePointSet {
    switch self {
    case .character(let codePoint): CodePointSet(codePoint)
    case .category(let set): set
    }
  }
}

extension RegexpParser {
  /// Parses a class, `[…]`.
  mutating func characterClass() throws(RegexpFailure) -> CodePointSet {
    let open = cursor.offset
    cursor.advance()
    let isNegated = cursor.consume("^")
    var ranges: [ClosedRange<UInt32>] = []
    if cursor.consume("-") { ranges.append(0x2D...0x2D) }
    while !cursor.consume("]") {
      guard !cursor.isAtEnd else { throw .syntax(cursor.error(at: open, "this `[` is not closed; add `]`")) }
      let start = cursor.offset
      if cursor.consume("-") {
        guard cursor.consume("]") else {
          throw .syntax(cursor.error(at: start, "misplaced `-` in `[…]`; write `\\-`"))
        }
        ranges.append(0x2D...0x2D)
        break
      }
      try member(into: &ranges)
    }
    guard !ranges.isEmpty else {
      throw .syntax(cursor.error(at: open, "the class is empty; put a character between `[` and `]`"))
    }
    let set = CodePointSet(union: ranges)
    return isNegated ? set.complement : set
  }

  /// Parses a character, a range or a category in a class.
  private mutating func member(into ranges: inout [ClosedRange<UInt32>]) throws(RegexpFailure) {
    let start = cursor.offset
    let first: UInt32
    switch try classItem() {
    case .category(let set):
      ranges.append(contentsOf: set.ranges)
      return
    case .character(let codePoint):
      first = codePoint
    }
    guard cursor.byte == UInt8(ascii: "-"), cursor.byte(after: 1) != UInt8(ascii: "]") else {
      ranges.append(first...first)
      return
    }
    cursor.advance()
    let second = cursor.offset
    guard case .character(let last) = try classItem() else {
      throw .syntax(cursor.error(at: second, "a range must end with a character; write `\\-` before a category"))
    }
    guard first <= last else {
      throw .syntax(cursor.error(at: start, "the ends of the range descend; exchange its ends"))
    }
    ranges.append(first...last)
  }

  private mutating func classItem() throws(RegexpFailure) -> RegexpEscape {
    switch cursor.byte {
    case UInt8(ascii: "\\"): return try escape()
    case UInt8(ascii: "["), UInt8(ascii: "-"):
      throw .syntax(cursor.error("write `\\` before \(cursor.found) inside `[…]`"))
    default:
      guard let codePoint = cursor.nextScalar() else {
        throw .syntax(cursor.error("this class is not closed; add `]`"))
      }
      return .character(codePoint)
    }
  }

  /// Parses an escape, beginning at its `\`.
  mutating func escape() throws(RegexpFailure) -> RegexpEscape {
    let start = cursor.offset
    cursor.advance()
    guard let byte = cursor.byte else { throw .syntax(cursor.error(at: start, "write `\\\\` for a backslash")) }
    switch Character(Unicode.Scalar(byte)) {
    case "(", ")", "*", "+", "-", ".", "?", "[", "\\", "]", "^", "{", "|", "}":
      cursor.advance()
      return .character(UInt32(byte))
    case "n": return single(0x0A)
    case "r": return single(0x0D)
    case "t": return single(0x09)
    case "p", "P": return .category(try category(from: start, isNegated: byte == UInt8(ascii: "P")))
    default: throw .syntax(noEscape(at: start))
    }
  }

  private mutating func single(_ codePoint: UInt32) -> RegexpEscape {
    cursor.advance()
    return .character(codePoint)
  }

  private func noEscape(at start: Int) -> QueryError {
    let advice =
      switch cursor.byte {
      case UInt8(ascii: "d"): "write `[0-9]` or `\\p{Nd}`"
      case UInt8(ascii: "D"): "write `[^0-9]`"
      case UInt8(ascii: "s"): "write `[ \\t\\n\\r]`"
      case UInt8(ascii: "S"): "write `[^ \\t\\n\\r]`"
      case UInt8(ascii: "w"): "write `[A-Za-z0-9_]`"
      case UInt8(ascii: "W"): "write `[^A-Za-z0-9_]`"
      case UInt8(ascii: "$"): "write `[$]`"
      default: "write the character itself"
      }
    return cursor.error(at: start, "unknown escape `\\` before \(cursor.found); \(advice)")
  }

  /// Parses a category, `p{…}`.
  private mutating func category(from start: Int, isNegated: Bool) throws(RegexpFailure) -> CodePointSet {
    cursor.advance()
    guard cursor.consume("{") else {
      throw .syntax(cursor.error("expected `{` and a category as in `\\p{Lu}`, found \(cursor.found)"))
    }
    let nameStart = cursor.offset
    while let byte = cursor.byte, isNameFirst(byte) { cursor.advance() }
    let name = String(decoding: cursor.bytes[nameStart..<cursor.offset], as: UTF8.self)
    guard cursor.consume("}") else {
      throw .syntax(cursor.error("expected `}` after the category, found \(cursor.found)"))
    }
    guard let set = GeneralCategories.shared.set(name) else {
      throw .syntax(
        cursor.error(at: nameStart, "`\(name)` is not a general category; write one such as `L`, `Lu` or `Nd`"))
    }
    return isNegated ? set.complement : set
  }
}
