import FeedJSON
import FeedModel
import FeedSQLite

/// The query of a managed feed, compiled for one connection.
struct SourceQuery {
  private let specification: SourceSpecification
  private let statement: Statement
  /// `{"name":` of each column, with a comma in front of all but the first.
  private let heads: [[UInt8]]
  private let names: [String]
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
    let names = Self.names(statement)
    self.names = names
    if let twice = Self.repeated(names) {
      throw SourceFault("the query has two columns named \"\(twice)\"; name one of them with AS")
    }
    for column in [specification.id] + [specification.section].compactMap({ $0 }) where !names.contains(column) {
      throw SourceFault("the query has no column \"\(column)\"; it has \(names.joined(separator: ", "))")
    }
    sectionColumn = specification.section.flatMap { names.firstIndex(of: $0) }.map(Int32.init)
    heads = names.enumerated().map { place, name in
      var head = ByteBuffer()
      head.append(place > 0 ? UInt8(ascii: ",") : UInt8(ascii: "{"))
      head.appendJSONString(name)
      head.append(UInt8(ascii: ":"))
      return Array(head.bytes)
    }
  }

  /// Statements that change nothing but are no queries, such as ATTACH, are refused by their first word.
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
    names.indices.first { names[..<$0].contains(names[$0]) }.map { names[$0] }
  }

  /// All rows; nil when the tables were altered since the query was compiled, and it has other columns now.
  func rows() throws -> ManagedRows? {
    defer { statement.reset() }
    var rows = ManagedRows()
    var text = ByteBuffer()
    while try statement.step() {
      if rows.count == 0 && Self.names(statement) != names { return nil }
      text.removeAll(keepingCapacity: true)
      for (column, head) in heads.enumerated() {
        head.withUnsafeBytes { text.append($0) }
        append(Int32(column), to: &text)
      }
      text.append(UInt8(ascii: "}"))
      try check(rows, text.count)
      rows.append(text.bytes, section: sectionColumn.map(section) ?? "")
    }
    return rows
  }

  private func check(_ rows: ManagedRows, _ size: Int) throws(SourceFault) {
    if rows.count >= specification.maxRows {
      throw SourceFault("the query gives more than \(specification.maxRows) rows (maxElements); add a LIMIT")
    }
    if size > specification.maxRowBytes {
      throw SourceFault(
        "row \(rows.count) of the query has \(size) bytes and may have \(specification.maxRowBytes) (maxElementBytes)")
    }
    if rows.byteCount + size > specification.maxBytes {
      throw SourceFault("the rows of the query have more than \(specification.maxBytes) bytes (maxBytes)")
    }
  }

  private func append(_ column: Int32, to out: inout ByteBuffer) {
    switch statement.type(of: column) {
    case .integer: out.append(integer: Int(statement.integer(column)))
    case .real: out.append(string: Self.text(statement.real(column)))
    case .text: out.appendJSONString(statement.text(column))
    case .blob: out.appendBase64(statement.blobBytes(column))
    case .null: out.append("null")
    }
  }

  /// The value of the section column as text.
  private func section(_ column: Int32) -> String {
    switch statement.type(of: column) {
    case .integer: return "\(statement.integer(column))"
    case .real: return Self.text(statement.real(column))
    case .text: return statement.text(column)
    case .null: return ""
    case .blob:
      var out = ByteBuffer()
      out.appendBase64(statement.blobBytes(column))
      return String(decoding: out.bytes.dropFirst().dropLast(), as: UTF8.self)
    }
  }

  /// The shortest digits that read back as the same number; JSON has no infinity.
  private static func text(_ number: Double) -> String {
    number.isFinite ? "\(number)" : "null"
  }
}
