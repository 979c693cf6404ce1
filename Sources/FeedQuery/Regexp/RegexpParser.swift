import FeedJSON

/// A recursive descent parser for I-Regexp (RFC 9485, section 4).
///
/// `^` and `$` are anchors. In the grammar they are normal characters, but in the mappings of RFC 9485, section 5, and in the
/// compliance suite of RFC 9535 they are anchors. `\^` and `[$]` are the characters.
///
/// Nesting is bounded by `QueryLimits.regexpNesting`, so no text can exhaust the stack.
struct RegexpParser {
  var cursor: TextCursor
  private var nesting = 0
  /// The number of atoms read so far.
  private var atoms = 0
  /// The number of ranges that were put together so far.
  private var ranges = 0
  private let mostRanges: Int

  /// Parses an expression. Adds the ranges that were put together to `ranges`.
  static func parse(
    _ text: String, ranges: inout Int, atMost mostRanges: Int = QueryLimits.regexpRanges
  ) throws(RegexpFailure) -> RegexpSyntax {
    let cursor: TextCursor
    do { cursor = try TextCursor(text) } catch { throw .limit(error) }
    var parser = RegexpParser(cursor: cursor, mostRanges: mostRanges)
    defer { ranges += parser.ranges }
    let syntax = try parser.alternatives()
    guard parser.cursor.isAtEnd else { throw parser.error("unmatched `)`; write `\\)`") }
    return syntax
  }

  private init(cursor: TextCursor, mostRanges: Int) { (self.cursor, self.mostRanges) = (cursor, mostRanges) }

  private mutating func alternatives() throws(RegexpFailure) -> RegexpSyntax {
    var branches = [try branch()]
    while cursor.consume("|") { branches.append(try branch()) }
    return branches.count == 1 ? branches[0] : .alternatives(branches)
  }

  private mutating func branch() throws(RegexpFailure) -> RegexpSyntax {
    var pieces: [RegexpSyntax] = []
    while let byte = cursor.byte, byte != UInt8(ascii: "|"), byte != UInt8(ascii: ")") {
      pieces.append(try quantified(try atom()))
    }
    return pieces.count == 1 ? pieces[0] : .sequence(pieces)
  }

  private mutating func atom() throws(RegexpFailure) -> RegexpSyntax {
    atoms += 1
    guard atoms <= QueryLimits.regexpInstructions else { throw .tooLarge(at: cursor.offset) }
    if cursor.consume("(") { return try group() }
    if cursor.consume(".") { return .set(.dot) }
    if cursor.consume("^") { return .start }
    if cursor.consume("$") { return .end }
    switch cursor.byte {
    case UInt8(ascii: "["): return .set(try characterClass())
    case UInt8(ascii: "\\"): return .set(try escape().set)
    case UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "?"), UInt8(ascii: "{"):
      throw error("\(cursor.found) has nothing before it to repeat; write `\\` before it for the character")
    case UInt8(ascii: "]"), UInt8(ascii: "}"): throw error("write `\\` before \(cursor.found)")
    default: return .set(CodePointSet(cursor.nextScalar() ?? 0))
    }
  }

  private mutating func group() throws(RegexpFailure) -> RegexpSyntax {
    let open = cursor.offset - 1
    guard nesting < QueryLimits.regexpNesting else {
      let limit = QueryLimits.regexpNesting
      throw .limit(
        cursor.error(at: open, "groups are nested more than \(grouped(limit)) levels deep; write fewer parentheses"))
    }
    if cursor.byte == UInt8(ascii: "?") { throw error("`(?…)` is not supported; use plain parentheses") }
    nesting += 1
    defer { nesting -= 1 }
    let inner = try alternatives()
    guard cursor.consume(")") else { throw error(at: open, "this `(` is not closed; add `)`") }
    return inner
  }

  /// Counts ranges that will be put together. Their number is not bounded by the number of atoms, nor by the length of the text.
  private mutating func count(ranges more: Int) throws(RegexpFailure) {
    ranges += more
    guard ranges <= mostRanges else { throw .tooManyClasses }
  }

  private func error(at offset: Int? = nil, _ message: String) -> RegexpFailure {
    .syntax(cursor.error(at: offset ?? cursor.offset, message))
  }
}

extension RegexpParser {
  /// Parses the quantifier after an atom, if there is one.
  private mutating func quantified(_ atom: RegexpSyntax) throws(RegexpFailure) -> RegexpSyntax {
    let start = cursor.offset
    var syntax = atom
    if cursor.consume("*") {
      syntax = .repeated(atom, min: 0, max: nil)
    } else if cursor.consume("+") {
      syntax = .repeated(atom, min: 1, max: nil)
    } else if cursor.consume("?") {
      syntax = .repeated(atom, min: 0, max: 1)
    } else if cursor.consume("{") {
      syntax = try bounded(atom, from: start)
    } else {
      return atom
    }
    guard syntax.size <= QueryLimits.regexpInstructions else { throw .tooLarge(at: start) }
    switch cursor.byte {
    case UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "?"), UInt8(ascii: "{"):
      throw error("more than one quantifier; remove \(cursor.found) or use parentheses")
    default: return syntax
    }
  }

  /// Parses the rest of a quantifier after `{`: `n}`, `n,}` or `n,m}`.
  private mutating func bounded(_ atom: RegexpSyntax, from start: Int) throws(RegexpFailure) -> RegexpSyntax {
    let least = try count()
    var most: Int? = least
    if cursor.consume(",") { most = cursor.byte == UInt8(ascii: "}") ? nil : try count() }
    guard cursor.consume("}") else {
      throw error("expected `}` after the number of repetitions, found \(cursor.found)")
    }
    if let most, most < least {
      throw error(at: start, "the maximum of repetitions is below the minimum; exchange the numbers")
    }
    return .repeated(atom, min: least, max: most)
  }

  /// Parses a number. Saturates at 10^9, which exceeds all limits.
  private mutating func count() throws(RegexpFailure) -> Int {
    let start = cursor.offset
    var value = 0
    while let byte = cursor.byte, isDigit(byte) {
      value = min(value * 10 + Int(byte - UInt8(ascii: "0")), 1_000_000_000)
      cursor.advance()
    }
    guard cursor.offset > start else {
      throw error("expected a number of repetitions, found \(cursor.found); write `\\{` for the character")
    }
    return value
  }
}

/// An escape: a backslash and the characters that belong to it.
private enum RegexpEscape {
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
  private mutating func characterClass() throws(RegexpFailure) -> CodePointSet {
    let open = cursor.offset
    cursor.advance()
    let isNegated = cursor.consume("^")
    var ranges: [ClosedRange<UInt32>] = []
    if cursor.consume("-") { ranges.append(0x2D...0x2D) }
    while !cursor.consume("]") {
      guard !cursor.isAtEnd else { throw error(at: open, "this `[` is not closed; add `]`") }
      let start = cursor.offset
      if cursor.consume("-") {
        guard cursor.consume("]") else { throw error(at: start, "misplaced `-` in `[…]`; write `\\-`") }
        ranges.append(0x2D...0x2D)
        break
      }
      try member(into: &ranges)
    }
    guard !ranges.isEmpty else { throw error(at: open, "the class is empty; put a character between `[` and `]`") }
    let set = CodePointSet(union: ranges)
    return isNegated ? try complement(of: set) : set
  }

  /// Parses a character, a range or a category in a class.
  private mutating func member(into ranges: inout [ClosedRange<UInt32>]) throws(RegexpFailure) {
    try count(ranges: 1)
    let start = cursor.offset
    let first: UInt32
    switch try classItem() {
    case .category(let set):
      try count(ranges: set.ranges.count)
      ranges.append(contentsOf: set.ranges)
      return
    case .character(let codePoint): first = codePoint
    }
    guard cursor.byte == UInt8(ascii: "-"), cursor.byte(after: 1) != UInt8(ascii: "]") else {
      ranges.append(first...first)
      return
    }
    cursor.advance()
    let second = cursor.offset
    guard case .character(let last) = try classItem() else {
      throw error(at: second, "a range must end with a character; write `\\-` before a category")
    }
    guard first <= last else { throw error(at: start, "the ends of the range descend; exchange its ends") }
    ranges.append(first...last)
  }

  private mutating func classItem() throws(RegexpFailure) -> RegexpEscape {
    switch cursor.byte {
    case UInt8(ascii: "\\"): return try escape()
    case UInt8(ascii: "["), UInt8(ascii: "-"): throw error("write `\\` before \(cursor.found) inside `[…]`")
    default:
      guard let codePoint = cursor.nextScalar() else { throw error("this class is not closed; add `]`") }
      return .character(codePoint)
    }
  }

  private mutating func escape() throws(RegexpFailure) -> RegexpEscape {
    let start = cursor.offset
    cursor.advance()
    guard let byte = cursor.byte else { throw error(at: start, "write `\\\\` for a backslash") }
    switch Character(Unicode.Scalar(byte)) {
    case "(", ")", "*", "+", "-", ".", "?", "[", "\\", "]", "^", "{", "|", "}":
      cursor.advance()
      return .character(UInt32(byte))
    case "n": return single(0x0A)
    case "r": return single(0x0D)
    case "t": return single(0x09)
    case "p", "P": return .category(try category(from: start, isNegated: byte == UInt8(ascii: "P")))
    default: throw noEscape(at: start)
    }
  }

  private mutating func single(_ codePoint: UInt32) -> RegexpEscape {
    cursor.advance()
    return .character(codePoint)
  }

  private func noEscape(at start: Int) -> RegexpFailure {
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
    return error(at: start, "unknown escape `\\` before \(cursor.found); \(advice)")
  }

  private mutating func category(from start: Int, isNegated: Bool) throws(RegexpFailure) -> CodePointSet {
    cursor.advance()
    guard cursor.consume("{") else { throw error("expected `{` and a category as in `\\p{Lu}`, found \(cursor.found)") }
    let nameStart = cursor.offset
    while let byte = cursor.byte, isNameFirst(byte) { cursor.advance() }
    let name = String(decoding: cursor.bytes[nameStart..<cursor.offset], as: UTF8.self)
    guard cursor.consume("}") else { throw error("expected `}` after the category, found \(cursor.found)") }
    guard let set = GeneralCategories.shared.set(name) else {
      throw error(at: nameStart, "`\(name)` is not a general category; write one such as `L`, `Lu` or `Nd`")
    }
    return isNegated ? try complement(of: set) : set
  }

  private mutating func complement(of set: CodePointSet) throws(RegexpFailure) -> CodePointSet {
    try count(ranges: set.ranges.count)
    return set.complement
  }
}
