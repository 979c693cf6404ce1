extension PathParser {
  /// Parses a `logical-expr`. `&&` has a higher precedence than `||`.
  mutating func condition() throws(QueryError) -> ConditionSyntax {
    var alternatives = [try conjunction()]
    while try consumeConnective("|", named: "or") { alternatives.append(try conjunction()) }
    return alternatives.count == 1 ? alternatives[0] : .any(alternatives)
  }

  private mutating func conjunction() throws(QueryError) -> ConditionSyntax {
    var parts = [try basic()]
    while try consumeConnective("&", named: "and") { parts.append(try basic()) }
    return parts.count == 1 ? parts[0] : .all(parts)
  }

  /// Skips blank space, a doubled `character` and blank space. Returns false and does not move if there is none.
  private mutating func consumeConnective(_ character: Character, named name: String) throws(QueryError) -> Bool {
    let end = cursor.offset
    cursor.skipBlanks()
    let start = cursor.offset
    guard cursor.consume(character) else {
      cursor.rewind(to: end)
      return false
    }
    guard cursor.consume(character) else {
      throw cursor.error(at: start, "unexpected `\(character)`; write `\(character)\(character)` for a logical \(name)")
    }
    cursor.skipBlanks()
    return true
  }

  private mutating func basic() throws(QueryError) -> ConditionSyntax {
    let isNegated = cursor.consume("!")
    if isNegated { cursor.skipBlanks() }
    let start = cursor.offset
    if cursor.consume("(") {
      let inner = try parenthesised(from: start)
      return isNegated ? .not(inner) : inner
    }
    if isNegated, cursor.byte == UInt8(ascii: "!") { throw cursor.error("repeated `!`; remove one or use parentheses") }
    let term = try term()
    guard let comparison = try comparisonOperator() else {
      let test = try test(term, at: start)
      return isNegated ? .not(test) : test
    }
    guard !isNegated else {
      throw cursor.error(at: start, "`!` applies to a test or to parentheses; write `!(… == …)`")
    }
    let left = try operand(term, at: start, of: "a comparison")
    cursor.skipBlanks()
    let right = try rightSide()
    try refuseSecondOperator()
    return .comparison(comparison, left, right)
  }

  private mutating func rightSide() throws(QueryError) -> OperandSyntax {
    let start = cursor.offset
    if cursor.byte == UInt8(ascii: "(") {
      throw cursor.error("parentheses cannot be compared; compare values and join conditions with `&&` and `||`")
    }
    let term = try term()
    return try operand(term, at: start, of: "a comparison")
  }

  /// Parses a condition in parentheses, after `(`.
  private mutating func parenthesised(from open: Int) throws(QueryError) -> ConditionSyntax {
    cursor.skipBlanks()
    let inner = try nested { parser throws(QueryError) in try parser.condition() }
    cursor.skipBlanks()
    guard cursor.consume(")") else {
      if cursor.isAtEnd { throw cursor.error("the `(` at byte \(open) is not closed; add `)`") }
      throw cursor.error("expected `&&`, `||` or `)` here, found \(cursor.found)")
    }
    let end = cursor.offset
    if try comparisonOperator() != nil {
      throw cursor.error(
        at: open, "parentheses cannot be compared; compare values and join conditions with `&&` and `||`")
    }
    cursor.rewind(to: end)
    return inner
  }

  /// Converts a term that is used alone as a condition.
  private func test(_ term: Term, at start: Int) throws(QueryError) -> ConditionSyntax {
    switch term {
    case .query(let query): return .exists(query)
    case .pattern(let pattern): return .pattern(pattern)
    case .literal: throw cursor.error(at: start, "a value alone is not a condition; compare it, as in `@.a == 1`")
    case .function(let name, _):
      throw cursor.error(
        at: start, "`\(name)` yields a value, which is not a condition; compare it, as in `\(name)(…) > 1`")
    }
  }
}

extension PathParser {
  /// Parses blank space and a comparison operator. Returns nil and does not move if there is none.
  private mutating func comparisonOperator() throws(QueryError) -> ComparisonOperator? {
    let end = cursor.offset
    cursor.skipBlanks()
    if cursor.consume("=", "=") { return .equal }
    if cursor.consume("!", "=") { return .notEqual }
    if cursor.consume("<", "=") { return .lessOrEqual }
    if cursor.consume(">", "=") { return .greaterOrEqual }
    if cursor.consume("<") { return .less }
    if cursor.consume(">") { return .greater }
    if cursor.byte == UInt8(ascii: "=") {
      throw cursor.error("unexpected `=`; write `==`, or `match(value, 'pattern')` for a regular expression")
    }
    cursor.rewind(to: end)
    return nil
  }

  private mutating func refuseSecondOperator() throws(QueryError) {
    let end = cursor.offset
    cursor.skipBlanks()
    let start = cursor.offset
    if try comparisonOperator() != nil {
      throw cursor.error(at: start, "comparisons cannot be chained; join two with `&&`")
    }
    cursor.rewind(to: end)
  }

  /// Converts a term that is used as one value: a `comparable`, or an argument of type `ValueType`.
  func operand(_ term: Term, at start: Int, of use: String) throws(QueryError) -> OperandSyntax {
    switch term {
    case .literal(let literal): return .literal(literal)
    case .function(_, let operand): return operand
    case .query(let query):
      guard query.isSingular else {
        let advice = "name one member or element, or use `value(…)` or `count(…)`"
        throw cursor.error(at: start, "this query may select several nodes and \(use) takes one value; \(advice)")
      }
      return .query(query)
    case .pattern(let pattern):
      let name = pattern.isWhole ? "match" : "search"
      throw cursor.error(
        at: start, "`\(name)` is a condition and \(use) takes a value; use it alone, or negated as `!\(name)(…)`")
    }
  }
}

/// A side of a comparison, a test or an argument, before its type is checked.
enum Term {
  case literal(LiteralSyntax)
  case query(QuerySyntax)
  /// A function that yields a value, with its name.
  case function(String, OperandSyntax)
  /// `match` or `search`.
  case pattern(PatternSyntax)
}

extension PathParser {
  mutating func term() throws(QueryError) -> Term {
    switch cursor.byte {
    case UInt8(ascii: "@"), UInt8(ascii: "$"): return .query(try query())
    case UInt8(ascii: "'"), UInt8(ascii: "\""): return .literal(.string(try quoted()))
    case let byte? where startsNumber(byte): return .literal(.number(try number()))
    case let byte? where isNameFirst(byte): return try word()
    default: throw notATerm()
    }
  }

  private func notATerm() -> QueryError {
    switch cursor.byte {
    case UInt8(ascii: "+"): cursor.error("remove the `+`; a positive number has no sign")
    case UInt8(ascii: "."): cursor.error("write `@.name` for a member and `0.1` for a fraction")
    case UInt8(ascii: "["): cursor.error("write `@[…]`: a query in a filter begins with `@` or `$`")
    case UInt8(ascii: "{"): cursor.error("objects cannot be written in a filter; compare their members one by one")
    default: cursor.error("expected a query, a value, a function or `(`, found \(cursor.found)")
    }
  }

  /// Parses a number, which has the syntax of JSON.
  private mutating func number() throws(QueryError) -> [UInt8] {
    let start = cursor.offset
    _ = cursor.consume("-")
    let integer = cursor.offset
    try digits(after: "`-`")
    if cursor.bytes[integer] == UInt8(ascii: "0"), cursor.offset > integer + 1 {
      throw cursor.error(at: start, "a number has no leading zero; remove it")
    }
    if cursor.consume(".") { try digits(after: "`.`") }
    if cursor.consume("e") || cursor.consume("E") {
      if !cursor.consume("-") { _ = cursor.consume("+") }
      try digits(after: "the exponent's `e`")
    }
    return Array(cursor.bytes[start..<cursor.offset])
  }

  private mutating func digits(after what: String) throws(QueryError) {
    let start = cursor.offset
    while let byte = cursor.byte, isDigit(byte) { cursor.advance() }
    guard cursor.offset > start else { throw cursor.error("expected a digit after \(what), found \(cursor.found)") }
  }

  /// Parses `true`, `false`, `null` or a call.
  private mutating func word() throws(QueryError) -> Term {
    let start = cursor.offset
    while let byte = cursor.byte, isNameFirst(byte) || isDigit(byte) { cursor.advance() }
    let word = String(decoding: cursor.bytes[start..<cursor.offset], as: UTF8.self)
    if cursor.byte == UInt8(ascii: "(") { return try call(word, at: start) }
    switch word {
    case "true": return .literal(.true)
    case "false": return .literal(.false)
    case "null": return .literal(.null)
    default: throw unknown(word, at: start)
    }
  }

  private func unknown(_ word: String, at start: Int) -> QueryError {
    if ["true", "false", "null"].contains(word.lowercased()) {
      return cursor.error(at: start, "write `\(word.lowercased())` in lower case")
    }
    var ahead = cursor
    ahead.skipBlanks()
    if QueryFunction(rawValue: word) != nil, ahead.byte == UInt8(ascii: "(") {
      return cursor.error("remove the blank space between `\(word)` and `(`")
    }
    return cursor.error(at: start, "unexpected word `\(word)`; write a member as `@.\(word)`, a string as `'\(word)'`")
  }
}

extension PathParser {
  /// Parses a string literal in single or double quotes. Returns it decoded, as UTF-8.
  mutating func quoted() throws(QueryError) -> [UInt8] {
    let open = cursor.offset
    guard let quote = cursor.byte else { throw cursor.error("expected a string in quotes") }
    cursor.advance()
    var decoded: [UInt8] = []
    while let byte = cursor.byte {
      if byte == quote {
        cursor.advance()
        return decoded
      }
      if byte == UInt8(ascii: "\\") {
        try escape(quote: quote, into: &decoded)
      } else if byte < 0x20 {
        throw cursor.error("write \(cursor.found) as `\\u\(hexadecimal(UInt32(byte)))` in a string")
      } else {
        decoded.append(byte)
        cursor.advance()
      }
    }
    let character = quote == UInt8(ascii: "'") ? "'" : "\""
    throw cursor.error("the string that begins at byte \(open) is not closed; add `\(character)`")
  }

  private mutating func escape(quote: UInt8, into decoded: inout [UInt8]) throws(QueryError) {
    let start = cursor.offset
    cursor.advance()
    guard let byte = cursor.byte else { throw cursor.error("expected the rest of an escape after `\\`") }
    switch byte {
    case UInt8(ascii: "b"): decoded.append(0x08)
    case UInt8(ascii: "f"): decoded.append(0x0C)
    case UInt8(ascii: "n"): decoded.append(0x0A)
    case UInt8(ascii: "r"): decoded.append(0x0D)
    case UInt8(ascii: "t"): decoded.append(0x09)
    case UInt8(ascii: "/"), UInt8(ascii: "\\"), quote: decoded.append(byte)
    case UInt8(ascii: "u"):
      cursor.advance()
      try unicodeEscape(from: start, into: &decoded)
      return
    case UInt8(ascii: "'"), UInt8(ascii: "\""):
      throw cursor.error(at: start, "remove this `\\`: only the quote that encloses the string is escaped")
    default: throw cursor.error(at: start, "`\\` before \(cursor.found) is not an escape; write `\\\\` for a backslash")
    }
    cursor.advance()
  }

  /// Parses the digits after `\u`, and the second half of a surrogate pair.
  private mutating func unicodeEscape(from start: Int, into decoded: inout [UInt8]) throws(QueryError) {
    var value = try fourHexadecimalDigits()
    let message = "unpaired surrogate; write a high surrogate and then a low one, as in `\\uD83D\\uDE00`"
    if value >= 0xDC00, value <= 0xDFFF { throw cursor.error(at: start, message) }
    if value >= 0xD800, value <= 0xDBFF {
      guard cursor.consume("\\", "u") else { throw cursor.error(at: start, message) }
      let low = try fourHexadecimalDigits()
      guard low >= 0xDC00, low <= 0xDFFF else { throw cursor.error(at: start, message) }
      value = 0x10000 + (value - 0xD800) << 10 + (low - 0xDC00)
    }
    if let scalar = Unicode.Scalar(value) { decoded.append(contentsOf: UTF8.encode(scalar) ?? .init()) }
  }

  private mutating func fourHexadecimalDigits() throws(QueryError) -> UInt32 {
    var value: UInt32 = 0
    for _ in 0..<4 {
      guard let byte = cursor.byte, let digit = Character(Unicode.Scalar(byte)).hexDigitValue else {
        throw cursor.error("expected four hexadecimal digits after `\\u`, found \(cursor.found)")
      }
      value = value << 4 | UInt32(digit)
      cursor.advance()
    }
    return value
  }
}
