/// The input of a managed feed: a database, a query and limits.
public struct SourceSpecification: Equatable, Sendable {
  /// The feed's name.
  public let name: String
  /// The absolute path of the database file.
  public let database: String
  /// One SELECT statement.
  public let query: String
  /// The column with the identity of a row.
  public let id: String
  /// The column that names sections; nil if there is none.
  public let section: String?
  /// Limits: the number of rows, the bytes of one row as JSON, and the bytes of all rows.
  public let maxRows: Int
  public let maxRowBytes: Int
  public let maxBytes: Int

  public init(
    name: String, database: String, query: String, id: String, section: String?, maxRows: Int, maxRowBytes: Int,
    maxBytes: Int
  ) {
    self.name = name
    self.database = database
    self.query = query
    self.id = id
    self.section = section
    self.maxRows = maxRows
    self.maxRowBytes = maxRowBytes
    self.maxBytes = maxBytes
  }
}
