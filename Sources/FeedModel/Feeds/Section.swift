/// An ordered list of rows: one bin, or the whole of a simpler feed.
///
/// Guarded by the engine's thread. Rows are handles into the table of the feed that owns the elements.
public final class Section {
  /// The name of the feed that is this section alone: the feed's own, or `collection/bin`.
  public let name: String
  let rows: PositionTree
  let elements: ElementTable

  init(name: String, elements: ElementTable, keyed: Bool) {
    self.name = name
    self.elements = elements
    rows = PositionTree(keyed: keyed)
  }

  /// How many rows there are. O(1).
  public var count: Int { rows.count }

  /// The element at a row in `0..<count`. O(log n).
  public func text(at row: Int) -> ElementText {
    elements.text(of: rows[row])
  }

  /// The elements of some rows, in order. O(log n + rows).
  public func forEach(in range: Range<Int>, _ body: (ElementText) -> Void) {
    rows.forEach(in: range) { body(elements.text(of: $0)) }
  }

  /// The rows as of now, to be read in parts; it holds on to the versions of elements that change meanwhile.
  func makeSnapshot() -> SectionSnapshot {
    let elements = elements
    let snapshot = rows.makeSnapshot(
      capture: { handle in
        let text = elements.text(of: handle)
        text.retain()
        return text.bitPattern
      },
      release: { ElementText(bitPattern: $0)?.release() })
    return SectionSnapshot(name: name, rows: snapshot)
  }
}
