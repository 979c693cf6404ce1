import FeedClient

/// The colours of text on a terminal, by meaning; nothing at all when they are off.
struct Palette: Equatable, Sendable {
  /// What a piece of text is.
  enum Role: Sendable {
    case plain, dim, bold
    case key, string, number, literal
    case added, updated, moved, deleted, selected
    case title, error
  }

  var isOn: Bool

  /// The text in the colour of its role.
  func paint(_ text: String, _ role: Role) -> String {
    guard isOn, let code = Self.code(role) else { return text }
    return "\u{1B}[\(code)m\(text)\u{1B}[0m"
  }

  private static func code(_ role: Role) -> String? {
    switch role {
    case .plain: nil
    case .dim: "2"
    case .bold: "1"
    case .key: "36"
    case .string: "32"
    case .number: "33"
    case .literal: "35"
    case .added: "1;32"
    case .updated: "1;33"
    case .moved: "1;36"
    case .deleted: "1;31"
    case .selected: "1;35"
    case .title: "1;4"
    case .error: "1;31"
    }
  }
}
