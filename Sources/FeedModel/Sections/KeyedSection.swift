import FeedChange

/// One section of a collection with one section for each value of a key.
final class KeyedSection: FeedSection {
  let name: String
  let id: UInt32
  /// The key that orders the sections; see `SortOrder`.
  let key: [UInt8]
  let prefix: UInt64
  var count = 0
  /// The row counts before the open operation and the open commit, valid if `scope` is the current one.
  var operation: (scope: UInt64, count: Int) = (0, 0)
  var commit: (scope: UInt64, count: Int) = (0, 0)
  private unowned let owner: KeyedSections

  init(id: UInt32, key: [UInt8], name: String, owner: KeyedSections) {
    (self.id, self.key, self.name, self.owner) = (id, key, name, owner)
    prefix = key.withUnsafeBytes { SortOrder.prefix(of: $0) }
  }

  init(_ other: KeyedSection, owner: KeyedSections) {
    (name, id, key, prefix, self.owner) = (other.name, other.id, other.key, other.prefix, owner)
    count = other.count
  }

  private func row(_ index: Int) -> Int { owner.start(of: self) + index }

  func row(at index: Int) -> Row { owner.flat.row(at: row(index)) }
  func element(at index: Int) -> ElementText { owner.flat.element(at: row(index)) }
  func type(at index: Int) -> UnsafeRawBufferPointer { owner.flat.type(at: row(index)) }

  func forEach(in range: Range<Int>, _ body: (Row) -> Void) {
    let start = row(0)
    owner.flat.forEach(in: (start + range.lowerBound)..<(start + range.upperBound), body)
  }
}

/// The rows of all sections when the snapshot was made. The snapshots of the sections read them one after another.
final class KeyedRows {
  private let rows: any SectionSnapshot
  private(set) var position = 0

  init(_ rows: any SectionSnapshot) { self.rows = rows }

  func next(max: Int, _ body: (Row) -> Void) -> Int {
    let read = rows.next(max: max, body)
    position += read
    return read
  }
}

final class KeyedSectionSnapshot: SectionSnapshot {
  let name: String
  let count: Int
  private(set) var position = 0
  private let rows: KeyedRows

  init(_ section: KeyedSection, _ rows: KeyedRows) {
    (name, count, self.rows) = (section.name, section.count, rows)
  }

  func next(max: Int, _ body: (Row) -> Void) -> Int {
    let most = min(Swift.max(max, 0), count - position)
    if most == 0 { return 0 }
    let read = rows.next(max: most, body)
    position += read
    return read
  }
}
