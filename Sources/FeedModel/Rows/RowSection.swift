/// A section whose rows are stored: handles, in order, into the table of the feed that owns the elements.
public final class RowSection: Section {
  let rows: PositionTree
  let elements: ElementTable

  /// - Parameter keyed: whether rows are ordered by sort keys.
  init(name: String, elements: ElementTable, keyed: Bool) {
    self.elements = elements
    rows = PositionTree(keyed: keyed)
    super.init(name: name)
  }

  public override var count: Int { rows.count }

  public override func row(at index: Int) -> Row {
    let element = elements.text(of: rows[index])
    return Row(element: element, type: element.type)
  }

  public override func element(at index: Int) -> ElementText { elements.text(of: rows[index]) }

  public override func forEach(in range: Range<Int>, _ body: (Row) -> Void) {
    rows.forEach(in: range) { handle in
      let element = elements.text(of: handle)
      body(Row(element: element, type: element.type))
    }
  }

  /// O(rows / 100): it holds on to the versions of elements that change before they are read.
  public override func makeSnapshot() -> SectionSnapshot {
    let elements = elements
    let snapshot = rows.makeSnapshot(
      capture: { handle in
        let text = elements.text(of: handle)
        text.retain()
        return text.bitPattern
      },
      release: { ElementText(bitPattern: $0)?.release() })
    return RowSnapshot(name: name, rows: snapshot)
  }
}
