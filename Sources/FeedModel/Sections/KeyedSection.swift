import FeedChange

/// One section of a collection with one section for each value of a key, created when it is asked for. Valid until the
/// next mutation.
final class KeyedSection: FeedSection {
  private let id: UInt32
  private let owner: KeyedSections

  init(id: UInt32, owner: KeyedSections) {
    (self.id, self.owner) = (id, owner)
  }

  var name: String { owner.name(of: id) }
  var isByValue: Bool { true }
  var count: Int { owner.rowCount(of: id) }

  private func row(_ index: Int) -> Int { owner.start(of: id) + index }

  func row(at index: Int) -> Row { owner.flat.row(at: row(index)) }
  func element(at index: Int) -> ElementText { owner.flat.element(at: row(index)) }
  func type(at index: Int) -> UnsafeRawBufferPointer { owner.flat.type(at: row(index)) }

  func forEach(in range: Range<Int>, _ body: (Row) -> Void) {
    owner.flat.forEach(in: range.shifted(by: row(0)), body)
  }

  func makeSnapshot(of range: Range<Int>) -> any SectionSnapshot {
    owner.flat.makeSnapshot(of: range.shifted(by: row(0)))
  }
}
