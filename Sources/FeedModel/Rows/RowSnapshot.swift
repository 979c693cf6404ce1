/// The stored rows of a section as they were when the snapshot was made.
final class RowSnapshot: SectionSnapshot {
  private let rows: PositionSnapshot

  init(name: String, rows: PositionSnapshot) {
    self.rows = rows
    super.init(name: name, count: rows.count)
  }

  override var position: Int { rows.position }

  override func next(max: Int, _ body: (Row) -> Void) -> Int {
    rows.next(max: max) { pattern in
      guard let element = ElementText(bitPattern: pattern) else { return }
      body(Row(element: element, type: element.type))
    }
  }
}
