import FeedChange
import FeedJSON

/// The rows of a query on another program's database.
///
/// The rows are set as a whole, and only differences change. A feed without a section column is one section, named as the
/// feed. With one there is a section for every value, in order of first appearance, named `feed/value`; rows without a value
/// (NULL or an empty text) form a section named as the feed. Without rows there is no section then.
public final class ManagedKind: FeedKind {
  private let number: FeedNumber
  private let state: ManagedState
  /// The state of the database as last reported. Not part of any commit.
  public private(set) var source = SourceStatus(.starting)

  init(number: FeedNumber, name: String, definition: ManagedDefinition, limits: Limits, seed: UInt64) {
    self.number = number
    state = ManagedState(feed: name, definition: definition, limits: limits, seed: seed)
  }

  /// The name of the feed.
  public var name: String { state.feed }
  /// What is read, and how rows are told apart.
  public var content: ManagedDefinition { state.definition }

  public var wireName: String { "managed" }
  public var definedAs: FeedDefinition.Content? { .managed(content) }
  public var sectionCount: Int { state.sections.count }
  public func section(at index: Int) -> any FeedSection { state.sections[index] }
  public func element(at path: IndexPath) -> ElementText {
    state.sections[Int(path.section)].element(at: Int(path.row))
  }
  public func type(at path: IndexPath) -> UnsafeRawBufferPointer { element(at: path).type }
  public var hasTypes: Bool { content.type != nil }
  /// Rows are not stored in images: they are read again after a start.
  public var rows: RowStore? { nil }
  public var bins: [Feed] { [] }

  /// Notes the state of the database.
  public func setSource(_ status: SourceStatus) { source = status }

  /// The element with an identity and its place.
  func find(_ id: JSONView) throws(FeedError) -> (row: Row, places: [IndexPath])? {
    guard let handle = try state.find(id, index: 0) else { return nil }
    return (state.row(of: handle), state.places(of: handle))
  }

  /// Makes the feed hold exactly these rows, in their order. Rows of the same identity that keep their order stay, others of
  /// the same identity are moved, different texts are updated.
  ///
  /// - Throws: `noIdentity`, `invalidParams` if two rows have one identity, `limitExceeded`; then nothing changed.
  public func set(_ rows: ManagedRows, in commit: Commit) throws(FeedError) {
    commit.startOperation()
    let mark = commit.log.mark
    let change: Change
    do throws(FeedError) {
      change = try state.apply(try state.plan(rows), rows, of: commit.graph.table[number], in: commit)
    } catch {
      throw commit.abandon(error, to: mark)
    }
    commit.finishOperation(on: number, result: change)
  }

  /// Reads another database or query: the rows stay until others are set.
  public func redefine(_ definition: FeedDefinition, of feed: Feed, in catalog: Catalog) throws(FeedError) {
    guard case .managed(let content) = definition.content else { throw conflict(of: feed, with: definition) }
    let state = state
    let former = (state.definition, state.type)
    (state.definition, state.type) = (content, content.type)
    catalog.commit.logStructure { (state.definition, state.type) = former }
  }
}
