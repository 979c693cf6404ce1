import FeedChange
import FeedJSON
import FeedQuery

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
    self.definition = definition
    self.seed = seed
    identifiedBy = definition.id
    typedBy = definition.type?.text
    let elements = ElementTable()
    let only = RowSection(name: feed, elements: elements, keyed: false)
    super.init(
      feed: feed, elements: elements, sections: definition.section == nil ? [only] : [], type: definition.type,
      limits: limits)
  }

  override func didAdd(_ handle: UInt32) {
    index.insert(handle, hash: elements.records[Int(handle)].hash)
  }

  override func willRemove(_ handle: UInt32) {
    index.remove(handle, hash: elements.records[Int(handle)].hash)
  }

  /// Returns the row with an identity; nil if there is none.
  /// - Throws: `noIdentity` if `value` is neither a string nor a number.
  func find(_ value: JSONView, index place: Int) throws(FeedError) -> UInt32? {
    identity.removeAll(keepingCapacity: true)
    guard Identity.append(value, to: &identity) else {
      throw .noIdentity(feed: feed, index: place, path: definition.id, found: value.kind.name)
    }
    return index.find(identity.bytes, hash: Identity.hash(identity.bytes, seed: seed), in: elements)
  }

  /// Returns the row that has the same identity as a row's object.
  func find(identityOf object: JSONView, index place: Int) throws(FeedError) -> UInt32? {
    var column = definition.id
    guard let value = column.withUTF8({ object.member(utf8: UnsafeRawBufferPointer($0)) }) else {
      throw .noIdentity(feed: feed, index: place, path: definition.id, found: "no such column")
    }
    return try find(value, index: place)
  }

  /// Creates a version with the identity of the last `find`.
  func makeText(_ object: JSONView) throws(FeedError) -> ElementText {
    let none = UnsafeRawBufferPointer(start: nil, count: 0)
    return try makeText(object, identity: identity.bytes, keys: none)
  }

  /// Adds a version with the identity of the last `find`.
  func add(_ text: ElementText, at now: Instant, _ log: UndoLog) -> UInt32 {
    addElement(text, hash: Identity.hash(identity.bytes, seed: seed), at: now, log)
  }

  /// The places of a row.
  func places(of handle: UInt32) -> [IndexPath] {
    sections.indices.compactMap { section in
      sections[section].rows.row(of: handle).map { IndexPath(section: UInt32(section), row: UInt32($0)) }
    }
  }

  /// The name of the section for a value of the section column.
  func sectionName(_ value: String) -> String {
    SectionName.name(value, in: feed)
  }
}
