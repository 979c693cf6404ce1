/// What to read for one managed feed.
public struct SourceSpecification: Equatable, Sendable {
  /// The feed's name.
  public let name: String
  /// The database file, from the root.
  public let database: String
  /// One SELECT.
  public let query: String
  /// The column that tells rows apart.
  public let id: String
  /// The column that names sections, if any.
  public let section: String?
  /// The most rows, bytes of one row and bytes of all rows to take.
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
