import FeedChange
import FeedJSON

extension ManagedDefinition {
  init(reading reader: DefinitionReader) throws(FeedError) {
    database = try Self.text("database", "the path of an SQLite database", reader)
    query = try Self.text("query", "one SELECT statement", reader)
    id = try Self.column("id", reader) ?? "id"
    section = try Self.column("section", reader)
    type = try reader.singularPath("type")
  }

  private static func text(
    _ member: StaticString, _ what: String, _ reader: DefinitionReader
  ) throws(FeedError) -> String {
    guard let text = try reader.string(member) else { throw reader.refuse("\(member)", "is missing: give \(what)") }
    guard !text.isEmpty, !text.utf8.contains(0) else { throw reader.refuse("\(member)", "must be \(what)") }
    return text
  }

  private static func column(_ member: StaticString, _ reader: DefinitionReader) throws(FeedError) -> String? {
    guard let text = try reader.string(member) else { return nil }
    guard !text.isEmpty else { throw reader.refuse("\(member)", "must be the name of a column of the query") }
    return text
  }
}
