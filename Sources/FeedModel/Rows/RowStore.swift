import FeedChange
import FeedJSON
import FeedQuery

/// Elements and the stored rows they stand in: what collections, arrays and singles are made of.
///
/// Guarded by the engine's thread. Everything that changes it is one of the logged primitives, each of which notes how to
/// undo itself, so that a commit can be taken back step by step.
public class RowStore {
  /// The feed's name, for errors.
  let feed: String
  let elements: ElementTable
  /// Fixed but for managed feeds, whose sections come and go.
  var sections: [RowSection]
  /// Where an element names its type.
  var type: SingularPath?
  var limits: Limits

  /// Working memory, kept between elements.
  var scanner: JSONScanner
  var compacted = ByteBuffer()
  /// The change made by the last step.
  var step = Change()

  init(feed: String, elements: ElementTable, sections: [RowSection], type: SingularPath?, limits: Limits) {
    self.feed = feed
    self.elements = elements
    self.sections = sections
    self.type = type
    self.limits = limits
    scanner = JSONScanner(maxDepth: limits.maxDepth)
  }

  /// An element came to life, or came back to it.
  func didAdd(_ handle: UInt32) {}
  /// An element is about to leave.
  func willRemove(_ handle: UInt32) {}

  /// Takes up a stored, compact element without judging it; it stands in no section yet.
  func restore(_ element: JSONView, at changed: Instant, _ log: UndoLog) throws(FeedError) -> UInt32 {
    let none = UnsafeRawBufferPointer(start: nil, count: 0)
    return addElement(try makeText(element, identity: none, keys: none), hash: 0, at: changed, log)
  }

  /// The ordering prefix of an element in a section; 0 where rows are not sorted.
  func key(of handle: UInt32, section: Int) -> UInt64 { 0 }

  /// The living element with the identity of a handle that was living when the commit began, or has come since; nil when
  /// there is none, and for elements without identity.
  func successor(of handle: UInt32) -> UInt32? { nil }

  /// An element as a row.
  func row(of handle: UInt32) -> Row {
    let element = elements.text(of: handle)
    return Row(element: element, type: element.type)
  }

  static func equal(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Bool {
    a.count == b.count && SortOrder.compare(a, b) == 0
  }
}
