import FeedJSON
import Glibc

extension Evaluation {
  /// Runs the filter that begins with test `entry` for the node `current`. Returns false if the steps run out.
  @inline(__always)
  mutating func accepts(_ entry: Int32, current: JSONView) -> Bool {
    var next = entry
    while next >= 0, !isExhausted {
      let test = tables.tests + Int(next)
      next = check(test, current: current) ? test.pointee.onTrue : test.pointee.onFalse
    }
    return next == Test.accept
  }

  @inline(__always)
  private mutating func check(_ test: UnsafePointer<Test>, current: JSONView) -> Bool {
    switch test.pointee.check {
    case .compareNode(let comparison, let query, let literal):
      guard let node = resolve(query, current: current) else { return comparison.contains(.unrelated) }
      return !comparison.isDisjoint(with: relation(node, tables.literals + Int(literal)))
    case .exists(let query): return exists(query, current: current)
    case .compare(let comparison, let left, let right): return compare(comparison, left, right, current: current)
    case .pattern(let index, let value, let pattern):
      return matches(index, value: value, pattern: pattern, current: current)
    }
  }

  private mutating func compare(
    _ comparison: ComparisonOperator, _ left: Int32, _ right: Int32, current: JSONView
  ) -> Bool {
    let (left, right) = (value(left, current: current), value(right, current: current))
    return !comparison.isDisjoint(with: relation(left, right))
  }

  private mutating func exists(_ index: Int32, current: JSONView) -> Bool {
    if tables.queries[Int(index)].isSingular { return resolve(index, current: current) != nil }
    return withNodes(index, current: current) { evaluation, nodes in nodes.next(&evaluation) != nil }
  }

  /// Calls `body` with a cursor over the nodes of a query.
  mutating func withNodes<Result>(
    _ index: Int32, current: JSONView, _ body: (inout Evaluation, inout NodeCursor) throws -> Result
  ) rethrows -> Result {
    let query = tables.queries[Int(index)]
    return try NodeCursor.over(query, from: query.isAbsolute ? root : current) { cursor in try body(&self, &cursor) }
  }
}

/// A JSON value or nothing: an instance of `ValueType` (RFC 9535, section 2.4.1).
enum QueryValue {
  case nothing
  case node(JSONView)
  case literal(UnsafePointer<Literal>)
  /// A result of `length` or `count`.
  case integer(Int)
}

extension Evaluation {
  /// The bytes of values whose comparison may take long.
  private static var longText: Int { 16 << 10 }

  mutating func value(_ index: Int32, current: JSONView) -> QueryValue {
    switch tables.operands[Int(index)] {
    case .literal(let literal): return .literal(tables.literals + Int(literal))
    case .query(let query): return resolve(query, current: current).map(QueryValue.node) ?? .nothing
    case .length(let operand): return length(value(operand, current: current))
    case .count(let query): return count(query, current: current)
    case .value(let query):
      return withNodes(query, current: current) { evaluation, nodes in
        guard let only = nodes.next(&evaluation), nodes.next(&evaluation) == nil else { return .nothing }
        return .node(only)
      }
    }
  }

  private mutating func count(_ query: Int32, current: JSONView) -> QueryValue {
    withNodes(query, current: current) { evaluation, nodes in
      var count = 0
      while nodes.next(&evaluation) != nil { count &+= 1 }
      return .integer(count)
    }
  }

  /// The number of scalars of a string, elements of an array or members of an object; nothing for other values.
  private mutating func length(_ value: QueryValue) -> QueryValue {
    switch value {
    case .nothing, .integer: return .nothing
    case .literal(let literal):
      return literal.pointee.kind == .string ? .integer(scalars(tables.slice(literal.pointee.bytes))) : .nothing
    case .node(let node):
      switch node.kind {
      case .string:
        charge(bytes: node.text.count)
        return .integer(node.withStringBytes(scalars))
      case .array: return .integer(node.count)
      case .object: return .integer(node.count &- ShadowedMembers.count(in: node, &self))
      case .null, .false, .true, .number: return .nothing
      }
    }
  }
}

/// The number of scalars of UTF-8, which is that of its bytes that are not continuation bytes.
private func scalars(_ utf8: UnsafeRawBufferPointer) -> Int {
  var count = 0
  for byte in utf8 where byte & 0xC0 != 0x80 { count &+= 1 }
  return count
}

extension Evaluation {
  /// The relation of `node` to a literal (RFC 9535, section 2.3.5.2.2).
  @inline(__always)
  mutating func relation(_ node: JSONView, _ literal: UnsafePointer<Literal>) -> ComparisonOperator {
    let kind = node.kind
    guard kind == literal.pointee.kind else { return .unrelated }
    switch kind {
    case .null, .false, .true: return .equal
    case .number:
      let isLong = chargeIfLong(node.text.count &+ Int(literal.pointee.bytes.count))
      if let right = literal.pointee.integer, let left = node.int {
        return left < right ? .less : left == right ? .equal : .greater
      }
      if !isLong { charge(bytes: node.text.count) }
      return Self.relation(JSONNumber.compare(node.text, tables.slice(literal.pointee.bytes)))
    case .string: return relation(string: node, tables.slice(literal.pointee.bytes))
    case .array, .object: return .unrelated
    }
  }

  @inline(__always)
  private mutating func relation(string node: JSONView, _ right: UnsafeRawBufferPointer) -> ComparisonOperator {
    charge(bytes: node.text.count)
    return Self.relation(node.withStringBytes { Self.order($0, right) })
  }

  /// Charges the work of reading numbers of so many bytes if these are long, such as `1.000…`. Returns whether they are.
  ///
  /// All digits are read, also if one number is short, or both are integers.
  @inline(__always)
  private mutating func chargeIfLong(_ bytes: Int) -> Bool {
    if bytes <= 64 { return false }
    charge(bytes: bytes)
    return true
  }

  mutating func relation(_ left: QueryValue, _ right: QueryValue) -> ComparisonOperator {
    switch (left, right) {
    case (.nothing, .nothing): .equal
    case (.nothing, _), (_, .nothing): .unrelated
    case (.node(let left), .node(let right)): relation(left, right)
    case (.node(let left), .literal(let right)): relation(left, right)
    case (.literal(let left), .node(let right)): relation(right, left).mirrored
    case (.literal(let left), .literal(let right)): relation(left.pointee, right.pointee)
    case (.integer(let left), .integer(let right)): Self.relation(left < right ? -1 : left == right ? 0 : 1)
    case (.integer(let left), _): relation(left, right)
    case (_, .integer(let right)): relation(right, left).mirrored
    }
  }

  private mutating func relation(_ left: JSONView, _ right: JSONView) -> ComparisonOperator {
    guard left.kind == right.kind else { return .unrelated }
    if left.kind != .number || !chargeIfLong(left.text.count &+ right.text.count) {
      charge(bytes: min(left.text.count, right.text.count))
    }
    switch left.kind {
    case .null, .false, .true: return .equal
    case .number: return Self.relation(JSONNumber.compare(left.text, right.text))
    case .string: return Self.relation(left.compareString(right))
    case .array, .object: return equals(left, right) ? .equal : .unrelated
    }
  }

  private func equals(_ left: JSONView, _ right: JSONView) -> Bool {
    guard let pace, min(left.text.count, right.text.count) >= Self.longText else { return left.equals(right) }
    return left.equals(right) { pace._withUnsafeGuaranteedRef { $0.spend() } }
  }

  private mutating func relation(_ left: Literal, _ right: Literal) -> ComparisonOperator {
    guard left.kind == right.kind else { return .unrelated }
    let (first, second) = (tables.slice(left.bytes), tables.slice(right.bytes))
    _ = chargeIfLong(first.count &+ second.count)
    switch left.kind {
    case .number: return Self.relation(JSONNumber.compare(first, second))
    case .string: return Self.relation(Self.order(first, second))
    case .null, .false, .true, .array, .object: return .equal
    }
  }

  /// The relation of the result of a function to another value.
  private mutating func relation(_ left: Int, _ right: QueryValue) -> ComparisonOperator {
    let number: UnsafeRawBufferPointer
    switch right {
    case .node(let node) where node.kind == .number: number = node.text
    case .literal(let literal) where literal.pointee.kind == .number: number = tables.slice(literal.pointee.bytes)
    case .nothing, .node, .literal, .integer: return .unrelated
    }
    _ = chargeIfLong(number.count)
    if let value = JSONNumber(number).int { return Self.relation(left < value ? -1 : left == value ? 0 : 1) }
    var text = String(left)
    return text.withUTF8 { Self.relation(JSONNumber.compare(UnsafeRawBufferPointer($0), number)) }
  }

  @inline(__always)
  private static func relation(_ order: Int) -> ComparisonOperator {
    order < 0 ? .less : order == 0 ? .equal : .greater
  }

  /// Compares two UTF-8 strings by scalars, which is the order of their bytes.
  @inline(__always)
  private static func order(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Int {
    let common = min(left.count, right.count)
    if common > 0, let first = left.baseAddress, let second = right.baseAddress {
      let order = Int(memcmp(first, second, common))
      if order != 0 { return order }
    }
    return left.count &- right.count
  }
}

extension Evaluation {
  /// Runs `match` or `search`. Returns false if either argument is not a string.
  mutating func matches(_ index: Int32, value: Int32, pattern: Int32, current: JSONView) -> Bool {
    let (value, pattern) = (self.value(value, current: current), self.value(pattern, current: current))
    let reserve = reserve
    var work = steps &+ reserve
    let result = withString(value) { value in
      withString(pattern) { pattern in
        work &-= (value.count &+ pattern.count) &>> 4 &+ 1
        return tables.patterns[Int(index)]._withUnsafeGuaranteedRef { compiled in
          isRepeatable
            ? compiled.matches(value, pattern: pattern, repeatableWork: &work)
            : compiled.matches(value, pattern: pattern, work: &work, pace)
        }
      }
    }
    steps = work &- reserve
    return result ?? false
  }

  /// Calls `body` with the decoded bytes of a string. Returns nil for other values.
  private func withString(_ value: QueryValue, _ body: (UnsafeRawBufferPointer) -> Bool?) -> Bool? {
    switch value {
    case .node(let node) where node.kind == .string: node.withStringBytes(body)
    case .literal(let literal) where literal.pointee.kind == .string: body(tables.slice(literal.pointee.bytes))
    case .nothing, .node, .literal, .integer: nil
    }
  }
}

extension JSONView {
  /// Calls `body` with the decoded bytes of this string. For a string without escapes, which is the usual case, they are part of
  /// the text and the call is inlined.
  ///
  /// Unpaired surrogates are three bytes, as in `withDecodedUTF8`.
  @inline(__always)
  func withStringBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    if !hasEscapes {
      let quoted = text
      return body(UnsafeRawBufferPointer(rebasing: quoted[1..<max(quoted.count - 1, 1)]))
    }
    // Only strings have escapes.
    return withDecodedUTF8(body).unsafelyUnwrapped
  }
}
