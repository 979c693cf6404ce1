import FeedClient
import FeedJSON

/// A path to one value inside another: names of members, and indices. The client evaluates only such paths; the daemon
/// evaluates full JSONPath.
struct MemberPath: Equatable, Sendable {
  enum Step: Equatable, Sendable {
    case name(String)
    /// Counted from 0; a negative index counts from the end.
    case index(Int)
  }

  var steps: [Step]

  /// The names of the steps; nil if one is an index.
  var names: [String]? {
    var names: [String] = []
    for step in steps {
      guard case .name(let name) = step else { return nil }
      names.append(name)
    }
    return names
  }

  /// Returns the value at the path; nil if there is none.
  func resolve(_ root: JSONView) -> JSONView? {
    var view = root
    for step in steps {
      let next: JSONView?
      switch step {
      case .name(let name): next = view.member(named: name)
      case .index(let index):
        guard view.kind == .array else { return nil }
        next = view.element(at: index < 0 ? view.count + index : index)
      }
      guard let next else { return nil }
      view = next
    }
    return view
  }
}

extension MemberPath {
  /// Parses a singular JSONPath of plain steps: `$`, then `.name`, `['name']`, `["name"]` or `[0]`. Returns nil for
  /// anything else, including escapes in a name.
  init?(jsonPath text: String) {
    guard text.first == "$" else { return nil }
    var rest = text.dropFirst()
    steps = []
    while let first = rest.first {
      rest = rest.dropFirst()
      if first == "." {
        let name = rest.prefix { Self.isNameCharacter($0) }
        guard let initial = name.first, !initial.isNumber else { return nil }
        steps.append(.name(String(name)))
        rest = rest.dropFirst(name.count)
      } else if first == "[", let end = rest.firstIndex(of: "]"), let step = Self.bracketed(rest[..<end]) {
        steps.append(step)
        rest = rest[rest.index(after: end)...]
      } else {
        return nil
      }
    }
  }

  /// Parses names and indices separated by dots, such as `user.name` or `tags.0`. Returns nil if a part is empty.
  init?(dotted text: some StringProtocol) {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.allSatisfy({ !$0.isEmpty }) else { return nil }
    steps = parts.map { part in Int(part).map { .index($0) } ?? .name(String(part)) }
  }

  private static func isNameCharacter(_ character: Character) -> Bool {
    character.isLetter || character.isNumber || character == "_" || !character.isASCII
  }

  private static func bracketed(_ text: Substring) -> Step? {
    if let index = Int(text) { return .index(index) }
    guard text.count >= 2, let quote = text.first, quote == "'" || quote == "\"", text.last == quote else { return nil }
    let name = text.dropFirst().dropLast()
    return name.contains("\\") || name.contains(quote) ? nil : .name(String(name))
  }
}
