/// What a managed feed reads from a database.
public struct SourceSpecification: Equatable, Sendable {
  /// The feed's name.
  public let name: String
  /// The absolute path of the database file.
  public let database: String
  /// One SELECT.
  public let query: String
  /// The column that identifies a row.
  public let id: String
  /// The column that names sections, if any.
  public let section: String?
  /// Limits: rows, bytes of one row as JSON, and bytes of all rows.
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
