/// An ordered list of rows: one bin, or the whole of a simpler feed. Guarded by the engine's thread.
public class Section {
  /// The name of the feed that is this section alone: the feed's own, or `collection/bin`.
  public let name: String

  init(name: String) {
    self.name = name
  }

  /// How many rows there are.
  public var count: Int { 0 }

  /// The row at an index in `0..<count`. O(log n).
  public func row(at index: Int) -> Row {
    preconditionFailure("an empty section has no row \(index)")
  }

  /// The element of the row at an index in `0..<count`: what `row(at:)` gives without its type. O(log n).
  public func element(at index: Int) -> ElementText { row(at: index).element }

  /// The type of the row at an index in `0..<count`: what `row(at:)` gives without its element. O(log n).
  public func type(at index: Int) -> UnsafeRawBufferPointer { row(at: index).type }

  /// The rows of a range, in order. O(log n + rows).
  public func forEach(in range: Range<Int>, _ body: (Row) -> Void) {
    for index in range { body(row(at: index)) }
  }

  /// The rows as of now, to be read in parts while the section goes on changing.
  public func makeSnapshot() -> SectionSnapshot {
    SectionSnapshot(name: name, count: count)
  }
}
