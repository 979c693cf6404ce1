import FeedJSON
import FeedModel
import FeedSystem
import TestSupport
import Testing

/// A value of a file of vectors, with the compact text that it has as an element.
struct VectorNode: Sendable {
  /// The compact text, digit for digit.
  let text: String
  /// The value of a string; nil for other kinds.
  let string: String?
  /// The value of an integer; nil for other kinds.
  let int: Int?
  let elements: [VectorNode]
  private let members: [String: VectorNode]

  private init(_ view: JSONView) {
    var compact = ByteBuffer()
    compact.append(compact: view)
    text = String(decoding: compact.bytes, as: UTF8.self)
    string = view.string
    int = view.int
    elements = view.kind == .array ? view.elements.map(VectorNode.init) : []
    var members: [String: VectorNode] = [:]
    if view.kind == .object {
      for member in view.members { members[member.key.string ?? ""] = VectorNode(member.value) }
    }
    self.members = members
  }

  subscript(name: String) -> VectorNode? { members[name] }

  /// A member that the format of the vectors demands.
  func member(_ name: String) throws -> VectorNode {
    guard let member = members[name] else { throw TestFailure("a vector has no \(name): \(text.prefix(100))") }
    return member
  }

  /// The cases of a file under `Protocol/vectors`, by name.
  static func cases(_ file: String) throws -> [VectorNode] {
    let bytes = try SmallFile.read("\(BuildProducts.packageFolder)/Protocol/vectors/\(file).json")
    var scanner = JSONScanner()
    return try bytes.withUnsafeBytes { bytes in
      try VectorNode(scanner.scan(bytes)).member("cases").elements
    }
  }
}

extension VectorNode: CustomTestStringConvertible {
  var testDescription: String { self["name"]?.string ?? text }
}
