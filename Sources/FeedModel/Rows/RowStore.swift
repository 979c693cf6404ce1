import FeedChange
import FeedJSON
import FeedQuery

/// The elements and stored rows of a collection, an array, a single or a managed feed.
///
/// Only the engine's thread may use it. It is changed only through logged primitives, each of which can be undone, so
/// that a commit can be rolled back step by step.
public class RowStore {
  /// The feed's name, for errors.
  let feed: String
  let elements: ElementTable
  /// Constant, except for managed feeds, which add and remove sections.
  var sections: [RowSection]
  /// The path of an element's type.
  var type: SingularPath?
  var limits: Limits
  /// The keyed sections that divide the rows of `sections[0]`; nil if `sections` are the sections.
  let keyed: KeyedSections?
  /// The limits on kept elements, set by `retain`; nil keeps all.
  var retention: Retention? {
    didSet { maxRetained = retention?.count ?? .max }
  }
  /// The number of elements that `retention` keeps.
  private(set) var maxRetained = Int.max
  /// The elements with an expiry time; nil if the retention has no `until`.
  var deadlines: Deadlines?

  /// The bytes of the shortest elements over which the filters may take long; `Int.max` if there are none.
  let slowSize: Int

  /// Scratch buffers, reused for every element.
  var scanner: JSONScanner
  var compacted = ByteBuffer()
  /// The change of the last step; empty if that is in `row`.
  var step = Change()
  /// The change of the last step of a collection if it is that of one row.
  var row: ChangeOfOne?
  /// The element that the row of `row` shows, unless it was deleted.
  var shownElement: ElementText?

  init(
    feed: String, elements: ElementTable, sections: [RowSection], type: SingularPath?, limits: Limits,
    keyed: KeyedSections? = nil, slowSize: Int = .max
  ) {
    self.feed = feed
    self.elements = elements
    self.sections = sections
    self.type = type
    self.limits = limits
    self.keyed = keyed
    self.slowSize = slowSize
    scanner = JSONScanner(maxDepth: limits.maxDepth)
  }

  deinit {
    AbandonedRows.charge(elements.memory, for: sections.lazy.map(\.rows))
  }

  /// The number of elements, whether bins show them or not. O(1).
  public var elementCount: Int { elements.count }

  /// The bytes of the longest element that the feed ever had. O(1).
  public var longestElement: Int { elements.longest }

  /// Empties the change of the last step.
  @inline(__always)
  func beginStep() {
    if row == nil { step.removeAll(keepingCapacity: true) } else { row = nil }
  }

  /// Called when an element was added, or when its removal was undone.
  func didAdd(_ handle: UInt32) {}
  /// Called before an element is removed.
  func willRemove(_ handle: UInt32) {}

  /// Brings near the memory that a coming element needs, as far as its text tells. Has no other effect.
  func lookAhead(at text: UnsafeRawBufferPointer) {}

  /// Makes room for so many elements in an empty store.
  func reserve(_ count: Int, _ pace: Pace = Pace()) { elements.reserve(count) }

  /// Adds a stored, compact element without evaluating filters. It is in no section yet.
  func restore(_ element: JSONView, at changed: Instant, _ log: UndoLog) throws(FeedError) -> UInt32 {
    let none = UnsafeRawBufferPointer(start: nil, count: 0)
    return addElement(try makeText(element, identity: none, at: nil, keys: none), at: changed, log)
  }

  /// The key prefix of an element in a section; 0 if rows are not sorted.
  func key(of handle: UInt32, section: Int) -> UInt64 { 0 }

  /// The current element with the same identity as `handle`, which existed when the commit began or later. Returns nil
  /// if there is none, or if elements have no identity.
  func successor(of handle: UInt32) -> UInt32? { nil }

  /// Whether changes of several steps move as few rows as possible. Such a store has one section.
  var movesFewest: Bool { false }

  /// The row that shows an element.
  func row(of handle: UInt32) -> Row {
    let element = elements.text(of: handle)
    return Row(element: element, type: element.type)
  }

  static func equal(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Bool {
    a.count == b.count && SortOrder.compare(a, b) == 0
  }
}
