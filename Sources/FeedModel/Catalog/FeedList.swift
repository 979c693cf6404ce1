import FeedChange
import FeedJSON

/// The feed `$feeds`: one section with one row for each defined feed, in order of name.
///
/// The catalog maintains it; no request changes it. An element is `{"feed","kind","definition"}`. The operation that
/// changes a definition also updates its row.
final class FeedListKind: SingleSectionKind {
  private let state: FeedListState

  init(limits: Limits) { state = FeedListState(limits: limits) }

  var shown: RowSection { state.sections[0] }

  var wireName: String { "feeds" }
  var definedAs: FeedDefinition.Content? { nil }
  func makeSnapshots() -> [SectionsSnapshot] { [SectionsSnapshot(shown.makeSnapshot())] }
  var hasTypes: Bool { false }
  /// The rows are not stored in images, because they follow from the definitions.
  var rows: RowStore? { state }

  func redefine(_ definition: FeedDefinition, of feed: Feed, in catalog: Catalog) throws(FeedError) {
    throw Self.readOnly
  }

  static let readOnly = FeedError.permissionDenied(
    reason: "feed \"\(FeedName.feeds)\" is read-only; define and undefine feeds to change it")

  func find(_ name: JSONView) -> (row: Row, places: [IndexPath])? {
    guard let name = name.string(atMost: FeedName.maxLength), FeedName.isValid(name), let handle = state.handles[name],
      let row = state.sections[0].rows.row(of: handle)
    else { return nil }
    return (state.row(of: handle), [IndexPath(section: 0, row: UInt32(row))])
  }

  /// Updates the row of a feed from its definition. O(log feeds + definition).
  /// - Returns: the change; empty if the row did not change.
  func follow(_ feed: Feed, in commit: Commit) throws(FeedError) -> Change {
    if feed.isGone {
      state.remove(feed.name, commit.log)
    } else if let definition = feed.definition {
      try state.put(definition, at: commit.tick(), commit.log)
    }
    return state.step
  }
}

extension Feed {
  /// Whether this is `$feeds`.
  public var isList: Bool { kind is FeedListKind }
}

extension Catalog {
  /// The error for a request that would change `$feeds`.
  public static var listIsReadOnly: FeedError { FeedListKind.readOnly }
}

/// The rows of `$feeds`, indexed by name.
///
/// Invariant: `handles` has each living element by its name; rows ascend by name.
private final class FeedListState: RowStore {
  fileprivate private(set) var handles: [String: UInt32] = [:]
  /// Scratch buffer, reused for every row.
  private var text = ByteBuffer()

  init(limits: Limits) {
    let elements = ElementTable()
    let section = RowSection(name: FeedName.feeds, elements: elements, keyed: true)
    super.init(feed: FeedName.feeds, elements: elements, sections: [section], type: nil, limits: limits)
  }

  private func name(of handle: UInt32) -> String {
    String(decoding: elements.text(of: handle).storedIdentity.dropFirst(), as: UTF8.self)
  }

  override func didAdd(_ handle: UInt32) { handles[name(of: handle)] = handle }
  override func willRemove(_ handle: UInt32) { handles[name(of: handle)] = nil }
  override func successor(of handle: UInt32) -> UInt32? { handles[name(of: handle)] }
  override func key(of handle: UInt32, section: Int) -> UInt64 {
    SortOrder.prefix(of: elements.text(of: handle).storedIdentity)
  }

  /// Adds or replaces the row of a feed and leaves the change in `step`.
  func put(_ definition: FeedDefinition, at now: Instant, _ log: UndoLog) throws(FeedError) {
    step.removeAll(keepingCapacity: true)
    write(definition)
    let name = definition.name
    var identity = ByteBuffer()
    identity.append(string: "s\(name)")
    let element = ElementText(
      identity: identity.bytes, keys: UnsafeRawBufferPointer(start: nil, count: 0), text: text.bytes, type: 0..<0)
    guard let element else { throw .internalError(reason: "there is no memory for \(counted(text.count, "byte"))") }
    let section = sections[0]
    guard let known = handles[name] else {
      let handle = addElement(element, at: now, log)
      let key = key(of: handle, section: 0)
      let row = section.rows.upperBound(key: key) { other in
        SortOrder.isAfter(elements.text(of: other).storedIdentity, element.storedIdentity)
      }
      insertRow(handle, section: 0, at: row, key: key, log)
      return step.added.append(IndexPath(section: 0, row: UInt32(row)))
    }
    if Self.equal(elements.text(of: known).text, element.text) { return element.release() }
    preserve(known)
    exchangeText(known, element, at: now, log)
    guard let row = section.rows.row(of: known) else { preconditionFailure("a listed feed has no row") }
    step.updated.append(IndexPath(section: 0, row: UInt32(row)))
  }

  /// Removes the row of a feed and leaves the change in `step`.
  func remove(_ name: String, _ log: UndoLog) {
    step.removeAll(keepingCapacity: true)
    guard let handle = handles[name], let row = sections[0].rows.row(of: handle) else { return }
    removeRow(section: 0, at: row, log)
    removeElement(handle, log)
    step.deleted.append(IndexPath(section: 0, row: UInt32(row)))
  }

  /// Writes the element of a feed to `text`. A definition that does not fit in a frame is written as null.
  private func write(_ definition: FeedDefinition) {
    text.removeAll(keepingCapacity: true)
    text.append("{\"feed\":", quoted: definition.name)
    text.append(",\"kind\":", quoted: definition.kind)
    text.append(",\"definition\":")
    let start = text.count
    text.append(UInt8(ascii: "{"))
    definition.appendMembers(to: &text)
    text.append("}}")
    if text.count <= limits.elementRoom { return }
    text.truncate(to: start)
    text.append("null}")
  }
}
