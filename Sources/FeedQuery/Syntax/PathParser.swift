/// A recursive descent parser for queries and filters (RFC 9535, appendix A).
///
/// It stops at the first error of syntax or type, and reports its byte. Nesting is bounded by `QueryLimits.nesting`, so no text
/// can exhaust the stack.
struct PathParser {
  var cursor: TextCursor
  private var nesting = 0

  private init(_ text: String) throws(QueryError) {
    cursor = try TextCursor(text)
  }

  /// Parses a text that is a query beginning with `$`.
  static func query(_ text: String) throws(QueryError) -> QuerySyntax {
    var parser = try PathParser(text)
    guard parser.cursor.byte == UInt8(ascii: "$") else { throw parser.missingRoot() }
    let query = try parser.query()
    guard parser.cursor.isAtEnd else { throw parser.afterQuery() }
    return query
  }

  /// Parses a text that is a condition as inside `[?…]`, with optional blank space around it.
  static func condition(_ text: String) throws(QueryError) -> ConditionSyntax {
    var parser = try PathParser(text)
    parser.cursor.skipBlanks()
    guard !parser.cursor.isAtEnd else {
      throw parser.cursor.error("the filter is empty; write a condition such as `@.priority >= 8`")
    }
    if parser.cursor.byte == UInt8(ascii: "?") {
      throw parser.cursor.error("remove the `?`; a filter is the condition inside `[?…]` alone")
    }
    let condition = try parser.condition()
    parser.cursor.skipBlanks()
    guard parser.cursor.isAtEnd else { throw parser.afterCondition() }
    return condition
  }

  /// Calls `body` one nesting level deeper.
  ///
  /// - Throws: the error of `body`, or an error if the nesting is too deep.
  mutating func nested<Result>(
    _ body: (inout PathParser) throws(QueryError) -> Result
  ) throws(QueryError) -> Result {
    guard nesting < QueryLimits.nesting else {
      throw cursor.error("this is nested more than \(QueryLimits.nesting) levels deep; write a flatter query")
    }
    nesting += 1
    defer { nesting -= 1 }
    return try body(&self)
  }
}

extension PathParser {
  private func missingRoot() -> QueryError {
    switch cursor.byte {
    case nil: cursor.error("the path is empty; write `$` for the whole value")
    case UInt8(ascii: "@"): cursor.error("a path begins with `$`; `@` is allowed only in a filter")
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
    case UInt8(ascii: ")"): cursor.error("unmatched `)`; remove it")
    case UInt8(ascii: "="): cursor.error("unexpected `=`; write `==`")
    case UInt8(ascii: "&"): cursor.error("unexpected `&`; write `&&`")
    case UInt8(ascii: "|"): cursor.error("unexpected `|`; write `||`")
    default: cursor.error("expected `&&`, `||` or the end of the filter, found \(cursor.found)")
    }
  }
}
