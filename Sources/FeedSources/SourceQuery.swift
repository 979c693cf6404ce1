import FeedJSON
import FeedModel
import FeedSQLite

/// The query of a managed feed, compiled for one connection. Reads rows as JSON objects with a member for each column.
struct SourceQuery {
  private let specification: SourceSpecification
  private let statement: Statement
  /// `{"name":` for the first column, `,"name":` for the others.
  private let heads: [[UInt8]]
  private let sectionColumn: Int32?

  init(_ specification: SourceSpecification, in database: Database) throws {
    self.specification = specification
    try Self.checkIsOneSelect(specification.query)
    statement = try database.prepare(specification.query)
    guard statement.isAlone(in: specification.query) else {
      throw SourceFault("the query is more than one statement; keep one SELECT")
    }
    guard statement.isReadOnly, statement.columnCount > 0 else {
      throw SourceFault("the query must be one SELECT that changes nothing")
    }
    guard !statement.hasParameters else {
      throw SourceFault("the query has a parameter, such as ? or :name, which nothing gives a value; write the value")
    }
    let names = Self.names(statement)
    if let twice = Self.repeated(names) {
      throw SourceFault("the query has two columns named \"\(twice)\"; name one of them with AS")
    }
    func place(of column: String) throws(SourceFault) -> Int {
      if let place = names.firstIndex(where: { $0.exact == column.exact }) { return place }
      throw SourceFault("the query has no column \"\(column)\"; it has \(names.joined(separator: ", "))")
    }
    _ = try place(of: specification.id)
    sectionColumn = try specification.section.map { Int32(try place(of: $0)) }
    heads = names.enumerated().map { place, name in
      var head = ByteBuffer()
      head.append(place > 0 ? UInt8(ascii: ",") : UInt8(ascii: "{"))
      head.appendJSONString(name)
      head.append(UInt8(ascii: ":"))
      return Array(head.bytes)
    }
  }

  /// Rejects statements that write nothing but are not queries, such as ATTACH, by their first word.
  private static func checkIsOneSelect(_ text: String) throws(SourceFault) {
    let word = SQLText.firstWord(of: text)
    guard ["SELECT", "WITH", "VALUES"].contains(word) else {
      throw SourceFault("the query must be one SELECT; it begins with \"\(word)\"")
    }
  }

  private static func names(_ statement: Statement) -> [String] {
    (0..<statement.columnCount).map { statement.name(of: $0) }
  }

  private static func repeated(_ names: [String]) -> String? {
    var known: Set<ExactText> = []
    return names.first { !known.insert($0.exact).inserted }
  }

  /// Returns all rows. The transaction of the compilation must be open.
  ///
  /// Limits are checked after each column, before the next one is read.
  func rows() throws -> ManagedRows {
    defer { statement.reset() }
    var rows = ManagedRows()
    var text = ByteBuffer()
    while try statement.step() {
      text.removeAll(keepingCapacity: true)
      for (column, head) in heads.enumerated() {
        head.withUnsafeBytes { text.append($0) }
        append(Int32(column), to: &text)
        // Counts the closing brace too.
        try check(rows, text.count + 1)
      }
      text.append(UInt8(ascii: "}"))
      rows.append(text.bytes, section: sectionColumn.map(section) ?? "")
    }
    return rows
  }

  private func check(_ rows: ManagedRows, _ size: Int) throws(SourceFault) {
    if rows.count >= specification.maxRows {
      throw SourceFault(
        "the query returns more than \(counted(specification.maxRows, "row")) (maxElements); add a LIMIT")
    }
    if size > specification.maxRowBytes {
      throw SourceFault(
        "row \(grouped(rows.count)) of the query has more than \(grouped(specification.maxRowBytes)) bytes (maxElementBytes)"
      )
    }
    if rows.byteCount + size > specification.maxBytes {
      throw SourceFault("the rows of the query have more than \(grouped(specification.maxBytes)) bytes (maxBytes)")
    }
  }

  private func append(_ column: Int32, to out: inout ByteBuffer) {
    switch statement.type(of: column) {
    case .integer: out.append(integer: Int(statement.integer(column)))
    case .real: out.append(string: Self.digits(statement.real(column)) ?? "null")
    case .text: out.appendJSONString(statement.text(column))
    case .blob: out.appendBase64(statement.blobBytes(column))
    case .null: out.append("null")
    }
  }

  /// The value of the section column as the names of sections have it; empty for values that are null in the element, or too long
  /// for a name.
  private func section(_ column: Int32) -> String {
    switch statement.type(of: column) {
    case .integer: return "\(statement.integer(column))"
    case .real:
      guard var digits = Self.digits(statement.real(column)) else { return "" }
      return digits.withUTF8 { JSONNumber(UnsafeRawBufferPointer($0)).canonicalText }
    case .text: return ManagedRows.sectionName(ofText: statement.text(column))
    case .null: return ""
    case .blob:
      var out = ByteBuffer()
      out.appendBase64(statement.blobBytes(column))
      return ManagedRows.sectionName(ofBase64: out.bytes)
    }
  }

  /// The shortest digits that parse to the same number; nil for infinity, which JSON cannot represent.
  private static func digits(_ number: Double) -> String? { number.isFinite ? "\(number)" : nil }
}

enum SQLText {
  /// The first word after white space and comments, in upper case.
  static func firstWord(of text: String) -> String {
    var rest = text.utf8[...]
    while let byte = rest.first {
      if byte == UInt8(ascii: " ") || (9...13).contains(byte) {
        rest = rest.dropFirst()
      } else if rest.starts(with: "--".utf8) {
        rest = rest.drop { $0 != UInt8(ascii: "\n") }
      } else if rest.starts(with: "/*".utf8) {
        rest = afterComment(rest.dropFirst(2))
      } else {
        break
      }
    }
    let word = rest.prefix { byte in (65...90).contains(byte & 0xDF) }
    return String(decoding: word, as: UTF8.self).uppercased()
  }

  private static func afterComment(_ text: Substring.UTF8View) -> Substring.UTF8View {
    var rest = text
    while let star = rest.firstIndex(of: UInt8(ascii: "*")) {
      rest = rest[rest.index(after: star)...]
      if rest.first == UInt8(ascii: "/") { return rest.dropFirst() }
    }
    return rest[rest.endIndex...]
  }
}

extension ByteBuffer {
  /// Appends bytes as a JSON string in padded base64 (RFC 4648, section 4).
  mutating func appendBase64(_ bytes: UnsafeRawBufferPointer) {
    let alphabet: StaticString = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    append(UInt8(ascii: "\""))
    var offset = 0
    while offset < bytes.count {
      let group = min(bytes.count - offset, 3)
      var bits = UInt32(bytes[offset]) << 16
      if group > 1 { bits |= UInt32(bytes[offset + 1]) << 8 }
      if group > 2 { bits |= UInt32(bytes[offset + 2]) }
      for place in 0..<4 {
        let index = Int(bits >> UInt32(18 - 6 * place)) & 63
        append(place <= group ? alphabet.utf8Start[index] : UInt8(ascii: "="))
      }
      offset += 3
    }
    append(UInt8(ascii: "\""))
  }
}

/// The input of a managed feed: a database, a query and limits.
public struct SourceSpecification: Equatable, Sendable {
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
      return try connection.check(specification).map { [.query($0)] } ?? []
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
