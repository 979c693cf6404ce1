extension RegexpParser {
  /// Reads the quantifier after an atom, if there is one.
  mutating func quantified(_ atom: RegexpSyntax) throws(RegexpFailure) -> RegexpSyntax {
    let start = cursor.offset
    var syntax = atom
    if cursor.take("*") {
      syntax = .repeated(atom, min: 0, max: nil)
    } else if cursor.take("+") {
      syntax = .repeated(atom, min: 1, max: nil)
    } else if cursor.take("?") {
      syntax = .repeated(atom, min: 0, max: 1)
    } else if cursor.take("{") {
      syntax = try bounded(atom, from: start)
    } else {
      return atom
    }
    guard syntax.size <= QueryLimits.regexpInstructions else { throw tooLarge(at: start) }
    switch cursor.byte {
    case UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "?"), UInt8(ascii: "{"):
      throw .syntax(
        cursor.error("an I-Regexp has one quantifier after an atom: remove \(cursor.found) or use parentheses"))
    default:
      return syntax
    }
  }

  /// Reads what follows `{`: `n}`, `n,}` or `n,m}`.
  private mutating func bounded(_ atom: RegexpSyntax, from start: Int) throws(RegexpFailure) -> RegexpSyntax {
    let least = try count()
    var most: Int? = least
    if cursor.take(",") {
      most = cursor.byte == UInt8(ascii: "}") ? nil : try count()
    }
    guard cursor.take("}") else {
      throw .syntax(cursor.error("expected `}` after the number of repetitions, found \(cursor.found)"))
    }
    if let most, most < least {
      throw .syntax(cursor.error(at: start, "the most repetitions are fewer than the least: exchange the numbers"))
    }
    return .repeated(atom, min: least, max: most)
  }

  /// Reads a number; one that is far too large stays just that.
  private mutating func count() throws(RegexpFailure) -> Int {
    let start = cursor.offset
    var value = 0
    while let byte = cursor.byte, isDigit(byte) {
      value = min(value * 10 + Int(byte - UInt8(ascii: "0")), 1_000_000_000)
      cursor.advance()
    }
    guard cursor.offset > start else {
      throw .syntax(
        cursor.error("expected a number of repetitions, found \(cursor.found): write `\\{` for the character"))
    }
    return value
  }
}
