import FeedQuery

/// What a `managed` feed is made of: a query on another program's SQLite database (`Protocol/README.md`, "Definitions").
///
/// The model does not read the database: `ManagedKind.set` receives the rows.
public struct ManagedDefinition: Equatable, Sendable {
  /// The database file, as the configuration names it.
  public let database: String
  /// One SELECT. Every row becomes one JSON object by the names of its columns.
  public let query: String
  /// The column that tells rows apart: a string or a number, different in every row.
  public let id: String
  /// The column whose values name sections, in the order in which they first appear; nil for one section.
  public let section: String?
  /// Where a row's object names its type.
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
