import FeedChange

/// A section of stored rows: an ordered list of handles into the element table of the feed.
public final class RowSection: FeedSection {
  public let name: String
  public let isByValue: Bool
  let rows: PositionTree
  let elements: ElementTable

  /// - Parameter keyed: whether rows are ordered by sort keys.
  init(name: String, elements: ElementTable, keyed: Bool, isByValue: Bool = false) {
    (self.name, self.isByValue, self.elements) = (name, isByValue, elements)
    rows = PositionTree(keyed: keyed)
  }

  /// Creates a section of rows that are in a tree already.
  private init(name: String, elements: ElementTable, rows: PositionTree, isByValue: Bool) {
    (self.name, self.isByValue, self.elements, self.rows) = (name, isByValue, elements, rows)
  }

  /// Returns a section with the same rows of a copy of the elements.
  func copy(_ elements: ElementTable, _ pace: Pace) -> RowSection {
    RowSection(name: name, elements: elements, rows: rows.copy(pace), isByValue: isByValue)
  }

  public var count: Int { rows.count }

  public func row(at index: Int) -> Row {
    let element = elements.text(of: rows[index])
    return Row(element: element, type: element.type)
  }

  public func element(at index: Int) -> ElementText { elements.text(of: rows[index]) }

  public func type(at index: Int) -> UnsafeRawBufferPointer { element(at: index).type }

  public func forEach(in range: Range<Int>, _ body: (Row) -> Void) {
    rows.forEach(in: range) { handle in
      let element = elements.text(of: handle)
      body(Row(element: element, type: element.type))
    }
  }

  /// The snapshot retains the versions of elements that change before it has read them.
  public func makeSnapshot(of range: Range<Int>) -> any SectionSnapshot {
    let elements = elements
    let snapshot = rows.makeSnapshot(
      of: range,
      capture: { handle in
        let text = elements.text(of: handle)
        text.retain()
        return text.bitPattern
      },
      release: { ElementText(bitPattern: $0)?.release() },
      size: { ElementText(bitPattern: $0)?.footprint ?? 0 })
    return RowSnapshot(snapshot)
  }
}

/// Rows in a position tree when the snapshot was made.
final class RowSnapshot: SectionSnapshot {
  let count: Int
  private let rows: PositionSnapshot
  /// What owns the elements, if the rows do not retain it.
  private let owner: AnyObject?

  init(_ rows: PositionSnapshot, ownedBy owner: AnyObject? = nil) {
    (self.rows, self.owner, count) = (rows, owner, rows.count)
  }

  func next(max: Int, _ body: (Row) -> Void) -> Int {
    rows.next(max: max) { pattern in
      guard let element = ElementText(bitPattern: pattern) else { return }
      body(Row(element: element, type: element.type))
    }
  }

  func skip(max: Int) -> Int { rows.skip(max: max) }
  func charge(to memory: SnapshotMemory) { rows.charge(to: memory) }
}

/// One section of a collection with one section for each value of a key, created when it is asked for. Valid until the
/// next mutation.
final class KeyedSection: FeedSection {
  private let id: UInt32
  private let owner: KeyedSections

  init(id: UInt32, owner: KeyedSections) { (self.id, self.owner) = (id, owner) }

  var name: String { owner.name(of: id) }
  var isByValue: Bool { true }
  var count: Int { owner.rowCount(of: id) }

  private func row(_ index: Int) -> Int { owner.start(of: id) + index }

  func row(at index: Int) -> Row { owner.flat.row(at: row(index)) }
  func element(at index: Int) -> ElementText { owner.flat.element(at: row(index)) }
  func type(at index: Int) -> UnsafeRawBufferPointer { owner.flat.type(at: row(index)) }

  func forEach(in range: Range<Int>, _ body: (Row) -> Void) { owner.flat.forEach(in: range.shifted(by: row(0)), body) }

  func makeSnapshot(of range: Range<Int>) -> any SectionSnapshot {
    owner.flat.makeSnapshot(of: range.shifted(by: row(0)))
  }
}
