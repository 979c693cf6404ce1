import FeedJSON
import FeedSystem

/// A JSON value of a message or of a file of vectors. Values are compared by value: objects as maps, numbers by their digits.
///
/// A string literal is parsed as JSON: `#expect(try JSONValue(answer)["result"]["counts"] == "[1,2]")`.
package struct JSONValue: Equatable, Sendable, CustomStringConvertible {
  /// The text as received, or the compact text of a value in a file of vectors.
  package let text: String
  /// The value of a string; nil for other kinds.
  package let string: String?
  /// The value of a boolean; nil for other kinds.
  package var bool: Bool? { kind == .true ? true : kind == .false ? false : nil }
  /// The value of an integer; nil for other kinds.
  package let int: Int?
  package let elements: [JSONValue]
  private let kind: JSONKind
  private let members: [String: JSONValue]

  package init(_ text: String) throws {
    self = try withJSON(text) { JSONValue($0, isCompacted: false) }
  }

  /// Parses a frame that must have been received.
  package init(_ text: String?) throws {
    guard let text else { throw TestFailure("no frame was received") }
    try self.init(text)
  }

  private init(_ view: JSONView, isCompacted: Bool) {
    if isCompacted {
      var compact = ByteBuffer()
      compact.append(compact: view)
      text = String(decoding: compact.bytes, as: UTF8.self)
    } else {
      text = String(decoding: view.text, as: UTF8.self)
    }
    kind = view.kind
    string = view.string
    int = view.int
    elements = view.kind == .array ? view.elements.map { JSONValue($0, isCompacted: isCompacted) } : []
    var members: [String: JSONValue] = [:]
    if view.kind == .object {
      for member in view.members {
        members[member.key.string ?? ""] = JSONValue(member.value, isCompacted: isCompacted)
      }
    }
    self.members = members
  }

  private init() {
    (text, string, int, elements, kind, members) = ("null", nil, nil, [], .null, [:])
  }

  private static let null = JSONValue()

  /// The cases of a file under `Protocol/vectors`.
  package static func cases(_ file: String) throws -> [JSONValue] {
    let bytes = try SmallFile.read("\(BuildProducts.packageFolder)/Protocol/vectors/\(file).json")
    return try withJSON(bytes) { JSONValue($0, isCompacted: true)["cases"].elements }
  }

  package static func == (left: JSONValue, right: JSONValue) -> Bool {
    guard left.kind == right.kind else { return false }
    switch left.kind {
    case .array: return left.elements == right.elements
    case .object: return left.members == right.members
    case .string: return left.string == right.string
    default: return left.text == right.text
    }
  }

  /// A member; null if it is absent.
  package subscript(name: String) -> JSONValue { members[name] ?? Self.null }
  /// An element of an array; null if it is absent.
  package subscript(position: Int) -> JSONValue { elements.indices.contains(position) ? elements[position] : Self.null }

  package func has(_ name: String) -> Bool { members[name] != nil }

  /// A member that must be present.
  package func member(_ name: String) throws -> JSONValue {
    guard let member = members[name] else { throw TestFailure("no member \(name): \(text.prefix(100))") }
    return member
  }

  package var description: String { text }

  /// The texts of the elements of each section, in the result of `snapshot`.
  package var rows: [[String]] { self["sections"].elements.map { $0["elements"].elements.map(\.text) } }
}

extension JSONValue: ExpressibleByStringLiteral {
  /// Parses a JSON text in a test.
  package init(stringLiteral text: String) {
    if let value = try? JSONValue(text) {
      self = value
    } else {
      self = JSONValue.null
      assertionFailure("not JSON: \(text)")
    }
  }
}
