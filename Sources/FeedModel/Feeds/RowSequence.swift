/// One row of a section: an element and the type it is shown as. Valid until the next mutation.
@frozen public struct Row {
  public let element: ElementText
  /// The row's type as a JSON string, quotes included; empty if it has none.
  public let type: UnsafeRawBufferPointer

  @inlinable public init(element: ElementText, type: UnsafeRawBufferPointer) {
    self.element = element
    self.type = type
  }

  /// The element as compact JSON.
  @inlinable public var text: UnsafeRawBufferPointer { element.text }
}

/// A named, ordered list of rows: one bin, or the whole of a simpler feed. Guarded by the engine's thread.
public protocol FeedSection: AnyObject {
  /// The name of the feed that is this section alone: the feed's own, `collection/bin` or `feed/value`.
  var name: String { get }
  var count: Int { get }
  /// The row at an index in `0..<count`. O(log n).
  func row(at index: Int) -> Row
  /// The element of the row at an index in `0..<count`. O(log n).
  func element(at index: Int) -> ElementText
  /// The type of the row at an index in `0..<count`. O(log n).
  func type(at index: Int) -> UnsafeRawBufferPointer
  /// Calls `body` with the rows of a range in order. O(log n + rows).
  func forEach(in range: Range<Int>, _ body: (Row) -> Void)
  /// The present rows, to be read in parts while the section goes on changing.
  func makeSnapshot() -> any SectionSnapshot
}

/// The rows of one section at the moment the snapshot was made, read once from front to back.
public protocol SectionSnapshot: AnyObject {
  var name: String { get }
  /// The number of rows at that moment.
  var count: Int { get }
  /// The index of the row that `next` returns next.
  var position: Int { get }
  /// Calls `body` with up to `max` further rows, each valid during its call. Returns their number.
  func next(max: Int, _ body: (Row) -> Void) -> Int
}

/// A feed at one revision, read in parts while the feed goes on changing.
///
/// Making one copies no rows. Later changes preserve what it has yet to read.
public final class FeedSnapshot {
  public let sections: [any SectionSnapshot]
  public let revision: UInt64

  init(sections: [any SectionSnapshot], revision: UInt64) {
    self.sections = sections
    self.revision = revision
  }
}
