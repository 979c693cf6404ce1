import FeedJSON

/// A JSON value or nothing: an instance of `ValueType` (RFC 9535, section 2.4.1).
enum QueryValue {
  case nothing
  case node(JSONView)
  case literal(UnsafePointer<Literal>)
  /// A result of `length` or `count`.
  case integer(Int)
}

extension Evaluation {
  mutating func value(_ index: Int32, current: JSONView) -> QueryValue {
    switch tables.operands[Int(index)] {
    case .literal(let literal):
      return .literal(tables.literals + Int(literal))
    case .query(let query):
      return resolve(query, current: current).map(QueryValue.node) ?? .nothing
    case .length(let operand):
      return length(value(operand, current: current))
    case .count(let query):
      return count(query, current: current)
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

  /// Scalars of a string, elements of an array, members of an object; nothing for the rest.
  private mutating func length(_ value: QueryValue) -> QueryValue {
    switch value {
    case .nothing, .integer:
      return .nothing
    case .literal(let literal):
      return literal.pointee.kind == .string ? .integer(scalars(tables.slice(literal.pointee.bytes))) : .nothing
    case .node(let node):
      switch node.kind {
      case .string:
        charge(bytes: node.text.count)
        return .integer(node.withStringBytes(scalars))
      case .array:
        return .integer(node.count)
      case .object:
        return .integer(node.count &- ShadowedMembers.count(in: node, &self))
      case .null, .false, .true, .number:
        return .nothing
      }
    }
  }
}

/// Number of scalars in UTF-8: its bytes that do not continue a sequence.
private func scalars(_ utf8: UnsafeRawBufferPointer) -> Int {
  var count = 0
  for byte in utf8 where byte & 0xC0 != 0x80 { count &+= 1 }
  return count
}
