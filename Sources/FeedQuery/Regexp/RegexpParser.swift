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

  static func parse(_ text: String) throws(RegexpFailure) -> RegexpSyntax {
    let cursor: TextCursor
    do { cursor = try TextCursor(text) } catch { throw .limit(error) }
    var parser = RegexpParser(cursor: cursor)
    let syntax = try parser.alternatives()
    guard parser.cursor.isAtEnd else { throw .syntax(parser.cursor.error("unmatched `)`; write `\\)`")) }
    return syntax
  }

  private init(cursor: TextCursor) {
    self.cursor = cursor
  }

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
    guard atoms <= QueryLimits.regexpInstructions else { throw tooLarge(at: cursor.offset) }
    if cursor.consume("(") { return try group() }
    if cursor.consume(".") { return .set(.dot) }
    if cursor.consume("^") { return .start }
    if cursor.consume("$") { return .end }
    switch cursor.byte {
    case UInt8(ascii: "["): return .set(try characterClass())
    case UInt8(ascii: "\\"): return .set(try escape().set)
    case UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "?"), UInt8(ascii: "{"):
      throw .syntax(
        cursor.error("\(cursor.found) has nothing before it to repeat; write `\\` before it for the character"))
    case UInt8(ascii: "]"), UInt8(ascii: "}"):
      throw .syntax(cursor.error("write `\\` before \(cursor.found)"))
    default:
      return .set(CodePointSet(cursor.nextScalar() ?? 0))
    }
  }

  private mutating func group() throws(RegexpFailure) -> RegexpSyntax {
    let open = cursor.offset - 1
    guard nesting < QueryLimits.regexpNesting else {
      let limit = QueryLimits.regexpNesting
      throw .limit(
        cursor.error(at: open, "groups are nested more than \(grouped(limit)) levels deep; write fewer parentheses"))
    }
    if cursor.byte == UInt8(ascii: "?") {
      throw .syntax(cursor.error("`(?…)` is not supported; use plain parentheses"))
    }
    nesting += 1
    defer { nesting -= 1 }
    let inner = try alternatives()
    guard cursor.consume(")") else { throw .syntax(cursor.error(at: open, "this `(` is not closed; add `)`")) }
    return inner
  }

  func tooLarge(at offset: Int) -> RegexpFailure {
    let limit = QueryLimits.regexpInstructions
    return .limit(
      cursor.error(
        at: offset, "the expression is too large (more than \(grouped(limit)) instructions); repeat less or shorten it")
    )
  }
}

extension RegexpParser {
  /// Parses the quantifier after an atom, if there is one.
  mutating func quantified(_ atom: RegexpSyntax) throws(RegexpFailure) -> RegexpSyntax {
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
    guard syntax.size <= QueryLimits.regexpInstructions else { throw tooLarge(at: start) }
    switch cursor.byte {
    case UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "?"), UInt8(ascii: "{"):
      throw .syntax(
        cursor.error("more than one quantifier; remove \(cursor.found) or use parentheses"))
    default:
      return syntax
    }
  }

  /// Parses the rest of a quantifier after `{`: `n}`, `n,}` or `n,m}`.
  private mutating func bounded(_ atom: RegexpSyntax, from start: Int) throws(RegexpFailure) -> RegexpSyntax {
    let least = try count()
    var most: Int? = least
    if cursor.consume(",") {
      most = cursor.byte == UInt8(ascii: "}") ? nil : try count()
    }
    guard cursor.consume("}") else {
      throw .syntax(cursor.error("expected `}` after the number of repetitions, found \(cursor.found)"))
    }
    if let most, most < least {
      throw .syntax(cursor.error(at: start, "the maximum of repetitions is below the minimum; exchange the numbers"))
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
      throw .syntax(
        cursor.error("expected a number of repetitions, found \(cursor.found); write `\\{` for the character"))
    }
    return value
  }
}
