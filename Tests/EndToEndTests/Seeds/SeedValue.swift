import FeedJSON
import TestSupport

/// One JSON value of a message, to be looked at by name and place.
struct SeedValue: Equatable, CustomStringConvertible {
  /// The text as it came.
  let text: String
  let string: String?
  let elements: [SeedValue]
  private let members: [String: SeedValue]

  init(_ text: String) throws {
    var scanner = JSONScanner()
    self = try Array(text.utf8).withUnsafeBytes { SeedValue(try scanner.scan($0)) }
  }

  private init(_ view: JSONView) {
    text = String(decoding: view.text, as: UTF8.self)
    string = view.string
    elements = view.kind == .array ? view.elements.map { SeedValue($0) } : []
    var members: [String: SeedValue] = [:]
    if view.kind == .object {
      for member in view.members { members[member.key.string ?? ""] = SeedValue(member.value) }
    }
    self.members = members
  }

  /// A member; null when there is none.
  subscript(name: String) -> SeedValue { members[name] ?? Self.null }
  subscript(place: Int) -> SeedValue { elements.indices.contains(place) ? elements[place] : Self.null }

  func has(_ name: String) -> Bool { members[name] != nil }

  var description: String { text }
  var int: Int { Int(text) ?? -1 }

  /// The texts of the elements of every section, of the result of `snapshot`.
  var rows: [[String]] { self["sections"].elements.map { $0["elements"].elements.map(\.text) } }

  /// `deleted`, `added` and `updated` of a change.
  var change: String { "-\(self["deleted"]) +\(self["added"]) ~\(self["updated"])" }

  private static let null = SeedValue(text: "null", string: nil, elements: [], members: [:])

  private init(text: String, string: String?, elements: [SeedValue], members: [String: SeedValue]) {
    (self.text, self.string, self.elements, self.members) = (text, string, elements, members)
  }
}
