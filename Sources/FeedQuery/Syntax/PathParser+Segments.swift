extension PathParser {
  /// Reads `$` or `@`, which stands here, and the segments after it.
  mutating func query() throws(QueryError) -> QuerySyntax {
    var query = QuerySyntax(isAbsolute: cursor.byte == UInt8(ascii: "$"), segments: [])
    cursor.advance()
    while true {
      let end = cursor.offset
      cursor.skipBlanks()
      guard cursor.byte == UInt8(ascii: ".") || cursor.byte == UInt8(ascii: "[") else {
        // Blank space belongs to a query only between segments.
        cursor.rewind(to: end)
        return query
      }
      query.segments.append(try segment())
    }
  }

  private mutating func segment() throws(QueryError) -> SegmentSyntax {
    let start = cursor.offset
    let isDescendant = cursor.take(".", ".")
    let selectors: [SelectorSyntax]
    if cursor.byte == UInt8(ascii: "[") {
      selectors = try bracketed()
    } else if isDescendant {
      selectors = [try shorthand(after: "..")]
    } else {
      cursor.advance()
      selectors = [try shorthand(after: ".")]
    }
    return SegmentSyntax(offset: start, isDescendant: isDescendant, selectors: selectors)
  }

  /// Reads `*` or a member name without quotes.
  private mutating func shorthand(after dots: String) throws(QueryError) -> SelectorSyntax {
    if cursor.take("*") { return .wildcard }
    let start = cursor.offset
    guard let first = cursor.byte else {
      throw cursor.error("expected a name or `*` after `\(dots)`, found \(cursor.found)")
    }
    guard isNameFirst(first) else { throw misplaced(first, after: dots) }
    while let byte = cursor.byte, isNameFirst(byte) || isDigit(byte) { cursor.advance() }
    return .name(Array(cursor.bytes[start..<cursor.offset]))
  }

  private func misplaced(_ byte: UInt8, after dots: String) -> QueryError {
    switch byte {
    case 0x20, 0x09, 0x0A, 0x0D: cursor.error("remove the blank space after `\(dots)`")
    case UInt8(ascii: "0")...UInt8(ascii: "9"):
      cursor.error("a name after `\(dots)` cannot begin with a digit: write an index as `[0]`, a name as `['0']`")
    case UInt8(ascii: "["), UInt8(ascii: "."): cursor.error("remove one `.`: a segment is `.name`, `..name` or `[…]`")
    case UInt8(ascii: "'"), UInt8(ascii: "\""): cursor.error("a quoted name stands in brackets: write `['name']`")
    default:
      cursor.error("expected a name or `*` after `\(dots)`, found \(cursor.found): other names are written `['…']`")
    }
  }

  /// Reads `[selector, …]`.
  private mutating func bracketed() throws(QueryError) -> [SelectorSyntax] {
    let open = cursor.offset
    cursor.advance()
    cursor.skipBlanks()
    var selectors: [SelectorSyntax] = []
    while true {
      selectors.append(try selector())
      cursor.skipBlanks()
      if cursor.take("]") { return selectors }
      guard cursor.take(",") else {
        if cursor.isAtEnd { throw cursor.error("the `[` at byte \(open) is not closed: add `]`") }
        throw cursor.error("expected `,` or `]` here, found \(cursor.found)")
      }
      cursor.skipBlanks()
    }
  }
}
