/// Reads the text of a query or of a filter into syntax, by recursive descent over the grammar of RFC 9535, appendix A.
///
/// The first thing that the grammar or the types of the functions do not allow ends it with an error at that byte. Nesting is
/// bounded by `QueryLimits.nesting`, so no text can exhaust the stack.
struct PathParser {
  var cursor: TextCursor
  private var nesting = 0

  private init(_ text: String) throws(QueryError) {
    cursor = try TextCursor(text)
  }

  /// Reads a whole text that is a query beginning with `$`.
  static func query(_ text: String) throws(QueryError) -> QuerySyntax {
    var parser = try PathParser(text)
    guard parser.cursor.byte == UInt8(ascii: "$") else { throw parser.missingRoot() }
    let query = try parser.query()
    guard parser.cursor.isAtEnd else { throw parser.afterQuery() }
    return query
  }

  /// Reads a whole text that is what may stand inside `[?…]`, blank space around it included.
  static func condition(_ text: String) throws(QueryError) -> ConditionSyntax {
    var parser = try PathParser(text)
    parser.cursor.skipBlanks()
    guard !parser.cursor.isAtEnd else {
      throw parser.cursor.error("the filter is empty: write a condition such as `@.priority >= 8`")
    }
    if parser.cursor.byte == UInt8(ascii: "?") {
      throw parser.cursor.error("leave out `?`: a filter is only what stands inside `[?…]`")
    }
    let condition = try parser.condition()
    parser.cursor.skipBlanks()
    guard parser.cursor.isAtEnd else { throw parser.afterCondition() }
    return condition
  }

  /// Runs `body` one level deeper, or refuses the text when that is too deep.
  mutating func nested<Result>(
    _ body: (inout PathParser) throws(QueryError) -> Result
  ) throws(QueryError) -> Result {
    guard nesting < QueryLimits.nesting else {
      throw cursor.error("this is nested more than \(QueryLimits.nesting) levels deep: write a flatter query")
    }
    nesting += 1
    defer { nesting -= 1 }
    return try body(&self)
  }
}

extension PathParser {
  private func missingRoot() -> QueryError {
    switch cursor.byte {
    case nil: cursor.error("the path is empty: write `$` for the whole value")
    case UInt8(ascii: "@"): cursor.error("a path begins with `$`: `@` stands only inside a filter")
    case 0x20, 0x09, 0x0A, 0x0D: cursor.error("remove the blank space before `$`")
    default: cursor.error("a path begins with `$`, not with \(cursor.found)")
    }
  }

  private func afterQuery() -> QueryError {
    switch cursor.byte {
    case 0x20, 0x09, 0x0A, 0x0D: cursor.error("remove the blank space at the end of the path")
    default: cursor.error("expected `.`, `..` or `[` here, found \(cursor.found)")
    }
  }

  private func afterCondition() -> QueryError {
    switch cursor.byte {
    case UInt8(ascii: ")"): cursor.error("this `)` closes nothing: remove it")
    case UInt8(ascii: "="): cursor.error("equality is written `==`")
    case UInt8(ascii: "&"): cursor.error("logical and is written `&&`")
    case UInt8(ascii: "|"): cursor.error("logical or is written `||`")
    default: cursor.error("expected `&&`, `||` or the end of the filter, found \(cursor.found)")
    }
  }
}
