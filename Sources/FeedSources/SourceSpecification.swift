import FeedModel
import FeedSQLite

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
    (self.name, self.database, self.query, self.id) = (name, database, query, id)
    (self.section, self.maxRows, self.maxRowBytes, self.maxBytes) = (section, maxRows, maxRowBytes, maxBytes)
  }

  /// Compares texts byte by byte, unlike `String`: two spellings of é are two files.
  public static func == (a: SourceSpecification, b: SourceSpecification) -> Bool {
    a.name.exact == b.name.exact && a.database.exact == b.database.exact && a.query.exact == b.query.exact
      && a.id.exact == b.id.exact && a.section?.exact == b.section?.exact
      && (a.maxRows, a.maxRowBytes, a.maxBytes) == (b.maxRows, b.maxRowBytes, b.maxBytes)
  }
}

/// Checks a managed feed before the daemon reads it: its query is compiled, against the database if that can be read.
public enum SourceCheck {
  public enum Finding: Equatable, Sendable {
    /// The query cannot be executed: the reason and the next step.
    case query(String)
    /// The database cannot be read now: the reason and the next step.
    case database(String)
  }

  /// Returns what is wrong, the query first.
  public static func run(_ specification: SourceSpecification) -> [Finding] {
    var connection = SourceConnection()
    do {
      try connection.check(specification)
      return []
    } catch let error as SourceQueryError {
      return [.query(error.reason)]
    } catch {
      let reason = SourceFault(any: error, specification.database).reason
      return (syntaxError(of: specification).map { [.query($0)] } ?? []) + [.database(reason)]
    }
  }

  /// Compiles the query without its database. Returns what is wrong with it whatever tables there are; nil if nothing is.
  private static func syntaxError(of specification: SourceSpecification) -> String? {
    guard let empty = try? Database(path: ":memory:", access: .readWrite) else { return nil }
    do {
      _ = try SourceQuery(specification, in: empty)
    } catch let error as SourceFault {
      return error.reason
    } catch let error as SQLiteError where error.isSyntaxError {
      return error.message
    } catch {}
    return nil
  }
}

/// The reason why a query cannot be executed on a database that can be read.
struct SourceQueryError: Error {
  let reason: String
}
