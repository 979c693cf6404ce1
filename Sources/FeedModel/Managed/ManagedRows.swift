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
    (self.database, self.query, self.id, self.section, self.type) = (database, query, id, section, type)
  }

  public static func == (a: ManagedDefinition, b: ManagedDefinition) -> Bool {
    a.database.exact == b.database.exact && a.query.exact == b.query.exact && a.id.exact == b.id.exact
      && a.section?.exact == b.section?.exact && a.type?.exact == b.type?.exact
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

/// All rows of a query: compact JSON objects in the order of the query, each with its section.
///
/// The reader of the database creates it on any thread and passes it to the model. All texts are in one block of bytes.
public struct ManagedRows: Sendable, Equatable {
  struct Entry: Sendable, Equatable {
    let section: Int
    let start: Int
    let end: Int
  }

  private(set) var bytes: [UInt8] = []
  private(set) var entries: [Entry] = []
  /// What follows the name of the feed in the names of sections, in order of first appearance; "" is the section of rows
  /// without a value.
  public private(set) var sections: [String] = []
  private var places: [ExactText: Int] = [:]

  public init() {}

  public var count: Int { entries.count }
  public var byteCount: Int { bytes.count }

  /// Appends a row. O(text).
  /// - Parameters:
  ///   - text: one compact JSON object.
  ///   - section: the value of the section column as text; "" if the feed has no section column or the value is NULL.
  public mutating func append(_ text: UnsafeRawBufferPointer, section: String = "") {
    let start = bytes.count
    bytes.append(contentsOf: text)
    entries.append(Entry(section: place(of: section), start: start, end: bytes.count))
  }

  /// Reads what ``appendSections(to:)`` wrote; nil if it is something else.
  public init?(sections: JSONView) {
    guard sections.kind == .array else { return nil }
    for section in sections.elements {
      guard let name = section.member("name")?.string, let rows = section.member("rows"), rows.kind == .array else {
        return nil
      }
      for row in rows.elements { append(row.text, section: name) }
    }
  }

  /// Appends the rows as a JSON array of sections. Rows of one section are brought together, which changes no feed.
  public func appendSections(to out: inout ByteBuffer) {
    var places = sections.map { _ in [Int]() }
    for (place, entry) in entries.enumerated() { places[entry.section].append(place) }
    out.append(UInt8(ascii: "["))
    bytes.withUnsafeBytes { bytes in
      for (section, rows) in places.enumerated() {
        out.append(section > 0 ? ",{\"name\":" : "{\"name\":", quoted: sections[section])
        out.append(",\"rows\":[")
        for (place, row) in rows.enumerated() {
          if place > 0 { out.append(UInt8(ascii: ",")) }
          out.append(UnsafeRawBufferPointer(rebasing: bytes[entries[row].start..<entries[row].end]))
        }
        out.append("]}")
      }
    }
    out.append(UInt8(ascii: "]"))
  }

  private mutating func place(of section: String) -> Int {
    // Rows of one section are usually adjacent.
    if let last = entries.last, sections[last.section].exact == section.exact { return last.section }
    if let known = places[section.exact] { return known }
    places[section.exact] = sections.count
    sections.append(section)
    return sections.count - 1
  }
}
