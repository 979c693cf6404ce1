import FeedJSON

@testable import FeedQuery

extension ReferenceEvaluator {
  enum Value {
    case nothing
    case null
    case bool(Bool)
    case number(Double)
    case string(String)
    case structure(JSONView)
  }

  func value(_ operand: OperandSyntax, current: JSONView) -> Value {
    switch operand {
    case .literal(.null): return .null
    case .literal(.false): return .bool(false)
    case .literal(.true): return .bool(true)
    case .literal(.number(let text)): return .number(Double(String(decoding: text, as: UTF8.self)) ?? .nan)
    case .literal(.string(let text)): return .string(String(decoding: text, as: UTF8.self))
    case .query(let query), .value(let query):
      let nodes = nodes(query, current: current)
      return nodes.count == 1 ? value(nodes[0]) : .nothing
    case .count(let query): return .number(Double(nodes(query, current: current).count))
    case .length(let inner):
      switch value(inner, current: current) {
      case .string(let text): return .number(Double(text.unicodeScalars.count))
      case .structure(let node):
        let names = node.members.map(\.key.string)
        return .number(Double(node.kind == .array ? node.count : Set(names).count))
      case .nothing, .null, .bool, .number: return .nothing
      }
    }
  }

  private func value(_ node: JSONView) -> Value {
    switch node.kind {
    case .null: .null
    case .false: .bool(false)
    case .true: .bool(true)
    case .number: .number(Double(String(decoding: node.text, as: UTF8.self)) ?? .nan)
    case .string: .string(node.string ?? "")
    case .array, .object: .structure(node)
    }
  }

  func compare(_ comparison: ComparisonOperator, _ left: Value, _ right: Value) -> Bool {
    switch comparison {
    case .equal: equal(left, right)
    case .notEqual: !equal(left, right)
    case .less: less(left, right)
    case .lessOrEqual: less(left, right) || equal(left, right)
    case .greater: less(right, left)
    case .greaterOrEqual: less(right, left) || equal(left, right)
    default: false
    }
  }

  private func equal(_ left: Value, _ right: Value) -> Bool {
    switch (left, right) {
    case (.nothing, .nothing), (.null, .null): true
    case (.bool(let left), .bool(let right)): left == right
    case (.number(let left), .number(let right)): left == right
    case (.string(let left), .string(let right)): left.unicodeScalars.elementsEqual(right.unicodeScalars)
    case (.structure(let left), .structure(let right)): left.equals(right)
    default: false
    }
  }

  private func less(_ left: Value, _ right: Value) -> Bool {
    switch (left, right) {
    case (.number(let left), .number(let right)): left < right
    case (.string(let left), .string(let right)):
      left.unicodeScalars.lexicographicallyPrecedes(right.unicodeScalars)
    default: false
    }
  }
}
