import FeedJSON
import Glibc

extension Evaluation {
  /// How `node` stands to a literal (RFC 9535, section 2.3.5.2.2).
  @inline(__always)
  mutating func relation(_ node: JSONView, _ literal: UnsafePointer<Literal>) -> ComparisonOperator {
    let kind = node.kind
    guard kind == literal.pointee.kind else { return .unrelated }
    switch kind {
    case .null, .false, .true:
      return .equal
    case .number:
      if let right = literal.pointee.integer, let left = node.int {
        return left < right ? .less : left == right ? .equal : .greater
      }
      charge(bytes: node.text.count)
      return Self.relation(JSONNumber.compare(node.text, tables.slice(literal.pointee.bytes)))
    case .string:
      return relation(string: node, tables.slice(literal.pointee.bytes))
    case .array, .object:
      return .unrelated
    }
  }

  @inline(__always)
  private mutating func relation(string node: JSONView, _ right: UnsafeRawBufferPointer) -> ComparisonOperator {
    charge(bytes: node.text.count)
    return Self.relation(node.withStringBytes { Self.order($0, right) })
  }

  /// How two values stand to one another.
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
    charge(bytes: min(left.text.count, right.text.count))
    switch left.kind {
    case .null, .false, .true: return .equal
    case .number: return Self.relation(JSONNumber.compare(left.text, right.text))
    case .string: return Self.relation(left.compareString(right))
    case .array, .object: return left.equals(right) ? .equal : .unrelated
    }
  }

  private func relation(_ left: Literal, _ right: Literal) -> ComparisonOperator {
    guard left.kind == right.kind else { return .unrelated }
    let (first, second) = (tables.slice(left.bytes), tables.slice(right.bytes))
    switch left.kind {
    case .number: return Self.relation(JSONNumber.compare(first, second))
    case .string: return Self.relation(Self.order(first, second))
    case .null, .false, .true, .array, .object: return .equal
    }
  }

  /// How the integer of a function stands to a value of another origin.
  private func relation(_ left: Int, _ right: QueryValue) -> ComparisonOperator {
    let number: UnsafeRawBufferPointer
    switch right {
    case .node(let node) where node.kind == .number: number = node.text
    case .literal(let literal) where literal.pointee.kind == .number: number = tables.slice(literal.pointee.bytes)
    case .nothing, .node, .literal, .integer: return .unrelated
    }
    if let value = JSONNumber(number).int { return Self.relation(left < value ? -1 : left == value ? 0 : 1) }
    var text = String(left)
    return text.withUTF8 { Self.relation(JSONNumber.compare(UnsafeRawBufferPointer($0), number)) }
  }

  @inline(__always)
  private static func relation(_ order: Int) -> ComparisonOperator {
    order < 0 ? .less : order == 0 ? .equal : .greater
  }

  /// Orders two UTF-8 strings by scalars, which is by bytes.
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
