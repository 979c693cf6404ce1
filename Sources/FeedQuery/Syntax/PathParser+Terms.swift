/// What may stand on a side of a comparison, alone as a test, or as an argument, before its types are judged.
enum Term {
  case literal(LiteralSyntax)
  case query(QuerySyntax)
  /// A function that yields a value, with the name it has.
  case function(String, OperandSyntax)
  /// `match` or `search`.
  case pattern(PatternSyntax)
}

extension PathParser {
  mutating func term() throws(QueryError) -> Term {
    switch cursor.byte {
    case UInt8(ascii: "@"), UInt8(ascii: "$"):
      return .query(try query())
    case UInt8(ascii: "'"), UInt8(ascii: "\""):
      return .literal(.string(try quoted()))
    case let byte? where startsNumber(byte):
      return .literal(.number(try number()))
    case let byte? where isNameFirst(byte):
      return try word()
    default:
      throw notATerm()
    }
  }

  private func notATerm() -> QueryError {
    switch cursor.byte {
    case UInt8(ascii: "+"): cursor.error("remove the `+`: a positive number has no sign")
    case UInt8(ascii: "."): cursor.error("write `@.name` for a member and `0.1` for a fraction")
    case UInt8(ascii: "["): cursor.error("write `@[…]`: a query in a filter begins with `@` or `$`")
    case UInt8(ascii: "{"): cursor.error("objects cannot be written in a filter: compare their members one by one")
    default: cursor.error("expected a query, a value, a function or `(`, found \(cursor.found)")
    }
  }

  /// Reads a number: like JSON's.
  private mutating func number() throws(QueryError) -> [UInt8] {
    let start = cursor.offset
    _ = cursor.take("-")
    let integer = cursor.offset
    try digits(after: "`-`")
    if cursor.bytes[integer] == UInt8(ascii: "0"), cursor.offset > integer + 1 {
      throw cursor.error(at: start, "a number has no leading zero: remove it")
    }
    if cursor.take(".") { try digits(after: "`.`") }
    if cursor.take("e") || cursor.take("E") {
      if !cursor.take("-") { _ = cursor.take("+") }
      try digits(after: "the exponent's `e`")
    }
    return Array(cursor.bytes[start..<cursor.offset])
  }

  private mutating func digits(after what: String) throws(QueryError) {
    let start = cursor.offset
    while let byte = cursor.byte, isDigit(byte) { cursor.advance() }
    guard cursor.offset > start else { throw cursor.error("expected a digit after \(what), found \(cursor.found)") }
  }

  /// Reads `true`, `false`, `null` or a call.
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
    return cursor.error(
      at: start, "`\(word)` means nothing here: write a member as `@.\(word)`, a string as `'\(word)'`")
  }
}
