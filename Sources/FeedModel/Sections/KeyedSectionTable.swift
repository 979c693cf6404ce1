import FeedChange

/// The sections of a collection with one section for each value of a key, by identifier and by key.
///
/// Invariant: a section is in `order` exactly if it has rows, at the place of its key; otherwise it is in `empty`.
struct KeyedSectionTable {
  /// The sections by identifier; nil for a free identifier.
  private var all: [KeyedSection?] = []
  private var free: [UInt32] = []
  /// The identifiers of the sections with rows, by key.
  private var order = PositionTree(keyed: true)
  /// The identifiers of sections without rows, by key; released at the end of the commit.
  private var empty: [[UInt8]: UInt32] = [:]

  /// Returns the same sections for a copy of their rows. All must have rows. O(sections).
  func copy(owner: KeyedSections, _ pace: Pace) -> KeyedSectionTable {
    assert(empty.isEmpty, "the commit has changed the sections")
    var copy = KeyedSectionTable()
    copy.order = order.copy(pace)
    copy.free = free
    copy.all.reserveCapacity(all.count)
    for section in all {
      copy.all.append(section.map { KeyedSection($0, owner: owner) })
      pace.spend()
    }
    return copy
  }

  // MARK: Sections with rows

  /// The number of sections with rows.
  var count: Int { order.count }

  /// The section at an index in `0..<count`. O(log sections).
  subscript(index: Int) -> KeyedSection { section(order[index]) }

  /// The index of a section with rows. O(log sections).
  func index(of section: KeyedSection) -> Int {
    guard let index = order.row(of: section.id) else { preconditionFailure("a section without rows has no index") }
    return index
  }

  /// The index of a key among the sections with rows, and the section with this key, if it has rows. O(log sections).
  func find(_ key: UnsafeRawBufferPointer) -> (index: Int, section: KeyedSection?) {
    let index = order.upperBound(key: SortOrder.prefix(of: key)) { other in
      section(other).key.withUnsafeBytes { SortOrder.compare($0, key) > 0 }
    }
    guard index > 0 else { return (0, nil) }
    let before = self[index - 1]
    let isEqual = before.key.withUnsafeBytes { SortOrder.compare($0, key) == 0 }
    return (index, isEqual ? before : nil)
  }

  /// The index where a section is or would be. O(log sections).
  func place(of section: KeyedSection) -> Int { section.key.withUnsafeBytes { find($0).index } }

  // MARK: All sections

  /// The section with an identifier. O(1).
  func section(_ id: UInt32) -> KeyedSection {
    guard let section = all[Int(id)] else { preconditionFailure("section \(id) is gone") }
    return section
  }

  /// Returns the section without rows that has a key; creates one if there is none. No section with rows has the key.
  mutating func emptySection(
    _ key: UnsafeRawBufferPointer, owner: KeyedSections, name: () -> String
  ) -> KeyedSection {
    let key = Array(key)
    if let known = empty[key] { return section(known) }
    let id = free.popLast() ?? UInt32(all.count)
    if Int(id) == all.count { all.append(nil) }
    let section = KeyedSection(id: id, key: key, name: name(), owner: owner)
    all[Int(id)] = section
    empty[key] = id
    return section
  }

  /// Records that a section got its first row. O(log sections).
  mutating func didFill(_ section: KeyedSection) {
    empty[section.key] = nil
    order.insert(section.id, at: place(of: section), key: section.prefix)
  }

  /// Records that a section lost its last row. O(log sections).
  mutating func didEmpty(_ section: KeyedSection) {
    _ = order.remove(at: index(of: section))
    empty[section.key] = section.id
  }

  /// Releases the sections without rows.
  mutating func releaseEmpty() {
    if empty.isEmpty { return }
    for id in empty.values {
      all[Int(id)] = nil
      free.append(id)
    }
    empty.removeAll()
  }

  /// O(sections).
  func checkInvariants() {
    precondition(all.count { $0 != nil } == order.count + empty.count, "a section is neither there nor empty")
    precondition(free.allSatisfy { all[Int($0)] == nil }, "a section has a free identifier")
  }
}
