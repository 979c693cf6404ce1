/// A recursive descent parser for queries and filters (RFC 9535, appendix A).
///
/// It stops at the first error of syntax or type, and reports its byte. Nesting is bounded by `QueryLimits.nesting`, so no text
/// can exhaust the stack.
struct PathParser {
  var cursor: TextCursor
  private var nesting = 0

  private init(_ text: String) throws(QueryError) { cursor = try TextCursor(text) }

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
  mutating func nested<Result>(_ body: (inout PathParser) throws(QueryError) -> Result) throws(QueryError) -> Result {
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

/// The functions of RFC 9535, section 2.4.
enum QueryFunction: String, CaseIterable {
  case length, count, match, search, value

  var arity: Int {
    switch self {
    case .length, .count, .value: 1
    case .match, .search: 2
    }
  }
}

extension PathParser {
  /// Parses the arguments of a call, beginning at `(`, and checks their number and types.
  mutating func call(_ name: String, at start: Int) throws(QueryError) -> Term {
    guard let function = QueryFunction(rawValue: name) else {
      let known = QueryFunction.allCases.map { "`\($0.rawValue)`" }.joined(separator: ", ")
      throw cursor.error(at: start, "unknown function `\(name)`; use one of \(known)")
    }
    assert(cursor.byte == UInt8(ascii: "("), "the cursor is not at the arguments")
    cursor.advance()
    cursor.skipBlanks()
    let arguments = try nested { parser throws(QueryError) in try parser.arguments(of: function, at: start) }
    guard arguments.count == function.arity else {
      let expected = function.arity == 1 ? "one argument" : "two arguments"
      throw cursor.error(at: start, "`\(name)` takes \(expected), not \(arguments.count)")
    }
    switch function {
    case .length: return .function(name, .length(try value(arguments[0], of: function)))
    case .count: return .function(name, .count(try nodes(arguments[0], of: function)))
    case .value: return .function(name, .value(try nodes(arguments[0], of: function)))
    case .match, .search:
      let value = try value(arguments[0], of: function)
      let pattern = try self.value(arguments[1], of: function)
      let offset = arguments[1].offset
      return .pattern(PatternSyntax(isWhole: function == .match, value: value, pattern: pattern, patternOffset: offset))
    }
  }

  private typealias Argument = (offset: Int, term: Term)

  private mutating func arguments(of function: QueryFunction, at start: Int) throws(QueryError) -> [Argument] {
    if cursor.consume(")") { return [] }
    var arguments: [Argument] = []
    while true {
      let offset = cursor.offset
      if cursor.byte == UInt8(ascii: "(") || cursor.byte == UInt8(ascii: "!") { throw conditionGiven(to: function) }
      arguments.append((offset, try term()))
      cursor.skipBlanks()
      if cursor.consume(")") { return arguments }
      guard cursor.consume(",") else { throw notAfterArgument(of: function, at: start) }
      cursor.skipBlanks()
    }
  }

  private func notAfterArgument(of function: QueryFunction, at start: Int) -> QueryError {
    switch cursor.byte {
    case nil: cursor.error("the `(` of `\(function.rawValue)` at byte \(start) is not closed; add `)`")
    case UInt8(ascii: "="), UInt8(ascii: "!"), UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "&"),
      UInt8(ascii: "|"):
      conditionGiven(to: function)
    default: cursor.error("expected `,` or `)` here, found \(cursor.found)")
    }
  }

  private func conditionGiven(to function: QueryFunction) -> QueryError {
    let kind = function == .count || function == .value ? "a query" : "a value"
    return cursor.error(
      "`\(function.rawValue)` takes \(kind), not a condition; move the condition out of its parentheses")
  }

  private func value(_ argument: Argument, of function: QueryFunction) throws(QueryError) -> OperandSyntax {
    try operand(argument.term, at: argument.offset, of: "`\(function.rawValue)`")
  }

  private func nodes(_ argument: Argument, of function: QueryFunction) throws(QueryError) -> QuerySyntax {
    guard case .query(let query) = argument.term else {
      let name = function.rawValue
      throw cursor.error(at: argument.offset, "`\(name)` takes a query; write one that begins with `@` or `$`")
    }
    return query
  }
}

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
