import FeedChange
import FeedJSON
import FeedQuery

/// A feed with the rows of a query on another program's database.
///
/// All rows are set at once, and only differences become changes. The feed has one section with its name, or with a
/// section column one for every value, named `feed/value`, in order of first appearance; rows without a value (NULL or
/// an empty text) are in one with its name.
public final class ManagedKind: FeedKind {
  private let number: FeedNumber
  private let state: ManagedState
  /// The last reported status of the database. Not part of any commit.
  public private(set) var source = SourceStatus(.starting)
  /// Whether another member of the group has set the rows last. Not part of any commit.
  public var hasForeignRows = false

  init(number: FeedNumber, name: String, definition: ManagedDefinition, limits: Limits, seed: UInt64) {
    self.number = number
    state = ManagedState(feed: name, definition: definition, limits: limits, seed: seed)
  }

  public var name: String { state.feed }
  public var content: ManagedDefinition { state.definition }
  public var wireName: String { "managed" }
  public var definedAs: FeedDefinition.Content? { .managed(content) }
  public var sectionCount: Int { state.sections.count }
  public func section(at index: Int) -> any FeedSection { state.sections[index] }
  public var rowCount: Int { state.rowCount }
  public func locate(_ index: Int) -> (section: any FeedSection, row: Int) {
    let path = path(ofFlat: index)
    return (state.sections[Int(path.section)], Int(path.row))
  }
  public func path(ofFlat index: Int) -> IndexPath { state.path(ofFlat: index) }
  public func makeSnapshots() -> [SectionsSnapshot] { state.sections.map { SectionsSnapshot($0.makeSnapshot()) } }
  public func element(at path: IndexPath) -> ElementText {
    state.sections[Int(path.section)].element(at: Int(path.row))
  }
  public func type(at path: IndexPath) -> UnsafeRawBufferPointer { element(at: path).type }
  /// Rows keep the types of a former definition until the next ``set(_:in:)``.
  public var hasTypes: Bool { content.type != nil || state.typedBy != nil }
  /// The rows are not stored in images, unless the catalog keeps them: they are read again after a start.
  public var rows: RowStore? { nil }
  /// The rows, for an image of a catalog that keeps them.
  var kept: ManagedState { state }
  public var bins: [Feed] { [] }
  public func setSource(_ status: SourceStatus) { source = status }

  /// Returns the element with an identity and its place; nil if there is none.
  func find(_ id: JSONView) throws(FeedError) -> (row: Row, places: [IndexPath])? {
    try state.find(id, index: 0, isID: true).map { state.found($0) }
  }

  /// Replaces all rows. Those with the same identity stay in their order, or move, and are updated if they differ.
  /// - Throws: `noIdentity`, `invalidParams` if two rows have the same identity, or `limitExceeded`, without any
  ///   effect.
  public func set(_ rows: ManagedRows, in commit: Commit) throws(FeedError) {
    commit.startOperation()
    let position = commit.log.position
    let change: Change
    do throws(FeedError) {
      let plan = try state.plan(rows, commit.pace)
      commit.long.willChange(number)
      change = try state.apply(plan, rows, of: commit.graph.table[number], in: commit)
    } catch {
      throw commit.abandon(error, to: position)
    }
    commit.finishOperation(on: number, result: change)
  }

  /// Sets another database or query. The rows stay until the next `set`.
  public func redefine(_ definition: FeedDefinition, of feed: Feed, in catalog: Catalog) throws(FeedError) {
    guard case .managed(let content) = definition.content else { throw conflict(of: feed, with: definition) }
    let state = state
    let former = (state.definition, state.type)
    (state.definition, state.type) = (content, content.type)
    catalog.commit.logStructure { (state.definition, state.type) = former }
  }
}

/// The rows of a managed feed, indexed by identity, in sections that are added and removed as needed.
///
/// Only the engine's thread may use it.
final class ManagedState: RowStore {
  var definition: ManagedDefinition
  /// The identity column of the existing rows.
  var identifiedBy: String
  /// The type path of the existing rows.
  var typedBy: String?
  private(set) var index = IdentityIndex()
  let seed: UInt64
  /// Scratch buffer, reused for every row.
  private var identity = ByteBuffer()

  init(feed: String, definition: ManagedDefinition, limits: Limits, seed: UInt64) {
    (self.definition, self.seed, identifiedBy) = (definition, seed, definition.id)
    typedBy = definition.type?.text
    let elements = ElementTable()
    let only = RowSection(name: feed, elements: elements, keyed: false)
    super.init(
      feed: feed, elements: elements, sections: definition.section == nil ? [only] : [], type: definition.type,
      limits: limits)
  }

  override func didAdd(_ handle: UInt32) { index.insert(handle, hash: hash(of: handle)) }
  override func willRemove(_ handle: UInt32) { index.remove(handle, hash: hash(of: handle)) }

  private func hash(of handle: UInt32) -> UInt32 {
    elements.text(of: handle).withIdentity { Identity.hash($0, seed: seed) }
  }

  /// Returns the row with an identity; nil if there is none.
  /// - Parameter isID: whether the request gave the identity itself, not a row that contains it.
  /// - Throws: `noIdentity` if `value` is neither a string nor a number.
  func find(_ value: JSONView, index place: Int, isID: Bool = false) throws(FeedError) -> UInt32? {
    if isID && Identity.isTooLong(value, forElementsOf: elements.longest) { return nil }
    identity.removeAll(keepingCapacity: true)
    guard Identity.append(value, to: &identity) else {
      throw .noIdentity(feed: feed, index: place, path: isID ? "" : definition.id, found: value.kind.name)
    }
    return index.find(identity.bytes, hash: Identity.hash(identity.bytes, seed: seed), in: elements)
  }

  // MARK: In an image

  /// Appends what an image needs to know of the rows besides their texts: a member that follows others.
  func appendFacts(to out: inout ByteBuffer) {
    out.append(",\"$rows\":{\"id\":", quoted: identifiedBy)
    if let typedBy { out.append(",\"type\":", quoted: typedBy) }
    out.append(",\"sections\":[")
    out.appendJSONStrings(sections.map(\.name))
    out.append("]}")
  }

  /// Whether the image that is restored has the rows.
  private(set) var areStored = false

  /// Begins to restore rows, with the facts about them. Until ``didRestore()``, they have the identity and type of their time.
  func restore(facts: JSONView) {
    areStored = true
    identifiedBy = facts.member("id")?.string ?? definition.id
    typedBy = facts.member("type")?.string
    type = typedBy.flatMap { try? SingularPath(parsing: $0) }
    let names = facts.member("sections")?.elements.compactMap(\.string) ?? []
    sections = names.map {
      RowSection(name: $0, elements: elements, keyed: false, isByValue: definition.section != nil)
    }
  }

  func didRestore() {
    areStored = false
    type = definition.type
  }

  override func restore(_ element: JSONView, at changed: Instant, _ log: UndoLog) throws(FeedError) -> UInt32 {
    guard let value = element.member(named: identifiedBy), try find(value, index: elements.count) == nil else {
      throw .noIdentity(feed: feed, index: elements.count, path: identifiedBy, found: "no such column")
    }
    return addElement(try makeText(element, identity: identity.bytes, at: value), at: changed, log)
  }

  // MARK: Identity

  /// Returns the row that has the same identity as a row's object.
  func find(identityOf object: JSONView, index place: Int) throws(FeedError) -> UInt32? {
    guard let value = object.member(named: definition.id) else {
      throw .noIdentity(feed: feed, index: place, path: definition.id, found: "no such column")
    }
    return try find(value, index: place)
  }

  /// Creates a version with the identity of the last `find`.
  func makeText(_ object: JSONView) throws(FeedError) -> ElementText {
    try makeText(object, identity: identity.bytes, at: object.member(named: definition.id))
  }
}

public struct SourceStatus: Equatable, Sendable {
  public enum State: String, Sendable {
    /// It has not been read yet.
    case starting
    /// The rows are those of the database.
    case ok
    /// The rows are those of the database at the last look: changes are not reported, so it is looked at periodically.
    case polling
    /// The database cannot be read. The rows are those of the last successful read.
    case error
  }

  public let state: State
  /// The cause and the next step; empty unless `state` is `polling` or `error`.
  public let message: String
  /// The time of the last change of status: RFC 3339, in UTC. Empty before the first read.
  public let since: String

  public init(_ state: State, message: String = "", since: String = "") {
    (self.state, self.message, self.since) = (state, message, since)
  }

  /// The status of a database that can be read.
  /// - Parameter blindness: why changes may go unnoticed until the next look; nil if all are noticed.
  public static func readable(blindness: String?, since: String) -> SourceStatus {
    SourceStatus(blindness == nil ? .ok : .polling, message: blindness ?? "", since: since)
  }

  /// Whether `other` has the same state and message, regardless of its time.
  public func saysTheSame(as other: SourceStatus) -> Bool { state == other.state && message == other.message }
}

/// The definition of a `managed` feed: a query on an SQLite database (Protocol/config.md, "Managed feeds").
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
  public let type: SingularPath?

  public init(database: String, query: String, id: String = "id", section: String? = nil, type: SingularPath? = nil) {
    (self.database, self.query, self.id, self.section, self.type) = (database, query, id, section, type)
  }

  public static func == (a: ManagedDefinition, b: ManagedDefinition) -> Bool {
    a.database.exact == b.database.exact && a.query.exact == b.query.exact && a.id.exact == b.id.exact
      && a.section?.exact == b.section?.exact && a.type == b.type
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
  /// What follows the feed's name in those of sections, by first appearance; "" is the section of rows without a value.
  public private(set) var sections: [String] = []
  private var places: [ExactText: Int] = [:]

  public init() {}

  public var count: Int { entries.count }
  public var byteCount: Int { bytes.count }

  /// Appends a row. O(text).
  /// - Parameter section: the value of the section column as text; "" if the feed has no section column or the value is NULL.
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
