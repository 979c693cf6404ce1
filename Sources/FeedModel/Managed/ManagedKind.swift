import FeedChange
import FeedJSON

/// A feed with the rows of a query on another program's database.
///
/// All rows are set at once, and only differences become changes. Without a section column the feed has one section
/// with the name of the feed. With a section column it has one section for every value, named `feed/value`, in order of
/// first appearance. Rows without a value (NULL or an empty text) form a section with the name of the feed. Without
/// rows, such a feed has no sections.
public final class ManagedKind: FeedKind {
  private let number: FeedNumber
  private let state: ManagedState
  /// The last reported status of the database. Not part of any commit.
  public private(set) var source = SourceStatus(.starting)

  init(number: FeedNumber, name: String, definition: ManagedDefinition, limits: Limits, seed: UInt64) {
    self.number = number
    state = ManagedState(feed: name, definition: definition, limits: limits, seed: seed)
  }

  /// The name of the feed.
  public var name: String { state.feed }
  /// The definition: the query, and the identity of its rows.
  public var content: ManagedDefinition { state.definition }

  public var wireName: String { "managed" }
  public var definedAs: FeedDefinition.Content? { .managed(content) }
  public var sectionCount: Int { state.sections.count }
  public func section(at index: Int) -> any FeedSection { state.sections[index] }
  public var rowCount: Int { state.sections.reduce(0) { $0 + $1.count } }
  public func locate(_ index: Int) -> (section: any FeedSection, row: Int) {
    var rest = index
    for section in state.sections.dropLast() {
      if rest < section.count { return (section, rest) }
      rest -= section.count
    }
    return (state.sections[state.sections.count - 1], rest)
  }
  public func path(ofFlat index: Int) -> IndexPath {
    var rest = index
    var section = 0
    while rest >= state.sections[section].count {
      rest -= state.sections[section].count
      section += 1
    }
    return IndexPath(section: UInt32(section), row: UInt32(rest))
  }
  public func makeSnapshots() -> [any SectionSnapshot] { state.sections.map { $0.makeSnapshot() } }
  public func element(at path: IndexPath) -> ElementText {
    state.sections[Int(path.section)].element(at: Int(path.row))
  }
  public func type(at path: IndexPath) -> UnsafeRawBufferPointer { element(at: path).type }
  /// Rows keep the types of a former definition until the next ``set(_:in:)``.
  public var hasTypes: Bool { content.type != nil || state.typedBy != nil }
  /// The rows are not stored in images: they are read again after a start.
  public var rows: RowStore? { nil }
  public var bins: [Feed] { [] }

  /// Sets the status of the database.
  public func setSource(_ status: SourceStatus) { source = status }

  /// Returns the element with an identity and its place; nil if there is none.
  func find(_ id: JSONView) throws(FeedError) -> (row: Row, places: [IndexPath])? {
    guard let handle = try state.find(id, index: 0) else { return nil }
    return (state.row(of: handle), state.places(of: handle))
  }

  /// Replaces all rows. Rows with the same identity stay if they keep their order, otherwise they move. Rows with
  /// another text are updated.
  ///
  /// - Throws: `noIdentity`, `invalidParams` if two rows have the same identity, or `limitExceeded`, without any
  ///   effect.
  public func set(_ rows: ManagedRows, in commit: Commit) throws(FeedError) {
    commit.startOperation()
    let position = commit.log.position
    let change: Change
    do throws(FeedError) {
      change = try state.apply(try state.plan(rows), rows, of: commit.graph.table[number], in: commit)
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
