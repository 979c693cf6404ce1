extension PathParser {
  /// Parses a query, beginning at its `$` or `@`.
  mutating func query() throws(QueryError) -> QuerySyntax {
    var query = QuerySyntax(isAbsolute: cursor.byte == UInt8(ascii: "$"), segments: [])
    cursor.advance()
    while true {
      let end = cursor.offset
      cursor.skipBlanks()
      guard cursor.byte == UInt8(ascii: ".") || cursor.byte == UInt8(ascii: "[") else {
        // Blank space is part of a query only between segments.
        cursor.rewind(to: end)
        return query
      }
      query.segments.append(try segment())
    }
  }

  private mutating func segment() throws(QueryError) -> SegmentSyntax {
    let start = cursor.offset
    let isDescendant = cursor.consume(".", ".")
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

  /// Parses `*` or a member name without quotes.
  private mutating func shorthand(after dots: String) throws(QueryError) -> SelectorSyntax {
    if cursor.consume("*") { return .wildcard }
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
      cursor.error("a name after `\(dots)` cannot begin with a digit; write an index as `[0]`, a name as `['0']`")
    case UInt8(ascii: "["), UInt8(ascii: "."): cursor.error("remove one `.`: a segment is `.name`, `..name` or `[…]`")
    case UInt8(ascii: "'"), UInt8(ascii: "\""): cursor.error("a quoted name must be in brackets; write `['name']`")
    default:
      cursor.error("expected a name or `*` after `\(dots)`, found \(cursor.found); other names are written `['…']`")
    }
  }

  /// Parses `[selector, …]`.
  private mutating func bracketed() throws(QueryError) -> [SelectorSyntax] {
    let open = cursor.offset
    cursor.advance()
    cursor.skipBlanks()
    var selectors: [SelectorSyntax] = []
    while true {
      selectors.append(try selector())
      cursor.skipBlanks()
      if cursor.consume("]") { return selectors }
      guard cursor.consume(",") else {
        if cursor.isAtEnd { throw cursor.error("the `[` at byte \(open) is not closed; add `]`") }
        throw cursor.error("expected `,` or `]` here, found \(cursor.found)")
      }
      cursor.skipBlanks()
    }
  }
}

extension PathParser {
  /// Parses one selector of a bracketed selection (RFC 9535, section 2.3).
  mutating func selector() throws(QueryError) -> SelectorSyntax {
    switch cursor.byte {
    case UInt8(ascii: "'"), UInt8(ascii: "\""): return .name(try quoted())
    case UInt8(ascii: "*"):
      cursor.advance()
      return .wildcard
    case UInt8(ascii: "?"):
      cursor.advance()
      cursor.skipBlanks()
      return .filter(try nested { parser throws(QueryError) in try parser.condition() })
    case let byte? where byte == UInt8(ascii: ":") || startsNumber(byte): return try indexOrSlice()
    default: throw notASelector()
    }
  }

  private func notASelector() -> QueryError {
    switch cursor.byte {
    case nil: cursor.error("expected a selector and `]`, found the end of the text")
    case UInt8(ascii: "]"): cursor.error("expected a selector before `]`; write `*` to select everything")
    case UInt8(ascii: ","): cursor.error("expected a selector before `,`; remove the comma")
    case UInt8(ascii: "@"), UInt8(ascii: "$"):
      cursor.error("a query inside brackets needs a `?` before it; write `[?…]`")
    case UInt8(ascii: "("): cursor.error("a filter begins with `?`; write `[?(…)]`")
    case UInt8(ascii: "+"): cursor.error("remove the `+`; a positive index has no sign")
    case let byte? where isNameFirst(byte): cursor.error("a name inside brackets needs quotes; write `['name']`")
    default: cursor.error("expected a name in quotes, an index, a slice, `*` or `?`, found \(cursor.found)")
    }
  }

  private mutating func indexOrSlice() throws(QueryError) -> SelectorSyntax {
    var bounds = SliceBounds(start: nil, end: nil, step: 1)
    if cursor.byte != UInt8(ascii: ":") {
      bounds.start = try integer()
      let end = cursor.offset
      cursor.skipBlanks()
      if cursor.byte != UInt8(ascii: ":"), let start = bounds.start {
        cursor.rewind(to: end)
        return .index(start)
      }
    }
    cursor.advance()
    bounds.end = try bound()
    if cursor.consume(":") {
      bounds.step = try bound() ?? 1
      if cursor.byte == UInt8(ascii: ":") { throw cursor.error("more than two colons in a slice; remove this one") }
    }
    return .slice(bounds)
  }

  /// Parses an optional bound after a colon, with the blank space around it.
  private mutating func bound() throws(QueryError) -> Int? {
    cursor.skipBlanks()
    switch cursor.byte {
    case let byte? where startsNumber(byte):
      let value = try integer()
      cursor.skipBlanks()
      return value
    case UInt8(ascii: "+"): throw cursor.error("remove the `+`; a positive bound has no sign")
    default: return nil
    }
  }

  /// Parses an `int`, which has no leading zero, is not `-0` and is in the range of exact integers.
  private mutating func integer() throws(QueryError) -> Int {
    let start = cursor.offset
    let isNegative = cursor.consume("-")
    let digits = cursor.offset
    var magnitude = 0
    while let byte = cursor.byte, isDigit(byte) {
      // A value above the limit is refused below, so its other digits do not matter.
      if magnitude <= QueryLimits.largestInteger { magnitude = magnitude * 10 + Int(byte - UInt8(ascii: "0")) }
      cursor.advance()
    }
    guard cursor.offset > digits else { throw cursor.error("expected a digit after `-`, found \(cursor.found)") }
    if cursor.bytes[digits] == UInt8(ascii: "0") {
      if cursor.offset > digits + 1 { throw cursor.error(at: start, "an integer has no leading zero; remove it") }
      if isNegative { throw cursor.error(at: start, "`-0` is not an index; write `0`") }
    }
    guard magnitude <= QueryLimits.largestInteger else {
      let limit = QueryLimits.largestInteger
      throw cursor.error(at: start, "this integer is out of range; write one between -\(limit) and \(limit)")
    }
    if cursor.byte == UInt8(ascii: ".") || cursor.byte == UInt8(ascii: "e") || cursor.byte == UInt8(ascii: "E") {
      throw cursor.error("an index or slice bound is an integer; remove the fraction or exponent")
    }
    return isNegative ? -magnitude : magnitude
  }
}
