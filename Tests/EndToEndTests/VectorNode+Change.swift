import FeedChange
import FeedModel
import Testing

/// Changes and states as the vectors write them.
extension VectorNode {
  /// The change that this object is.
  func change() throws -> Change {
    Change(
      deleted: try member("deleted").paths(), added: try member("added").paths(),
      updated: try member("updated").paths(),
      moves: try self["moves"]?.elements.map { Move(deleted: try $0.number(0), added: try $0.number(1)) } ?? [],
      sectionsDeleted: try self["sections"]?.member("deleted").elements.map { try $0.number() } ?? [],
      sectionsAdded: try self["sections"]?.member("added").elements.map {
        SectionAddition(at: try $0.member("at").number(), name: try #require(try $0.member("name").string))
      } ?? [])
  }

  /// The texts of the elements of every section of this state.
  func rows() throws -> [[String]] {
    try elements.map { try $0.member("elements").elements.map(\.text) }
  }

  /// The names of the sections of this state.
  func names() throws -> [String] {
    try elements.map { try #require(try $0.member("name").string) }
  }

  /// The texts of this array.
  func texts() -> [String] { elements.map(\.text) }

  private func paths() throws -> [IndexPath] {
    try elements.map { IndexPath(section: try $0.number(0), row: try $0.number(1)) }
  }

  private func number(_ place: Int) throws -> UInt32 { try elements[place].number() }

  private func number() throws -> UInt32 { UInt32(try #require(int)) }
}
