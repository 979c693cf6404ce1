import FeedChange
import FeedJSON
import FeedQuery

/// The definition of a `managed` feed: a query on another program's SQLite database (Protocol/config.md, "Managed
/// feeds").
///
/// The model does not read the database: `ManagedKind.set` receives the rows.
public struct ManagedDefinition: Equatable, Sendable {
  /// The path of the database file, as given in the configuration.
  public let database: String
  /// One SELECT statement. Every row becomes one JSON object with a member for each column.
  public let query: String
  /// The column with the identity of a row: a string or a number, unique among the rows.
  public let id: String
  /// The column whose values name the sections, in order of first appearance; nil for one section.
  public let section: String?
  /// The path of a row's type in its object.
  public let type: SingularPath?

  public init(database: String, query: String, id: String = "id", section: String? = nil, type: SingularPath? = nil) {
    self.database = database
    self.query = query
    self.id = id
    self.section = section
    self.type = type
  }

  public static func == (a: ManagedDefinition, b: ManagedDefinition) -> Bool {
    a.database == b.database && a.query == b.query && a.id == b.id && a.section == b.section
      && a.type?.text == b.type?.text
  }
}

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
