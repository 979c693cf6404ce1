import FeedChange
import FeedJSON

/// Converts the change of one list of rows to the change of the sections that divide it.
///
///     var division = SectionDivision(changed) { addition of the section with the identifier $0 at index $1 }
///     division.delete(row, 0)              // the entries of the list's change
///     division.add(row, 0)
///     let change = division.finish()
///
/// Sections never change their order among each other. A row that stays in the list but changes its section is a move.
struct SectionDivision {
  struct Changed {
    let id: UInt32
    /// The row counts before and after the change, not both 0.
    let before: UInt32
    let now: UInt32
    /// The index before the change (for a new section, the index that it would have had), and after it.
    let indexBefore: UInt32
    let index: UInt32
    /// The number of rows of the list before those of the section, before the change and after it.
    let startBefore: UInt32
    let start: UInt32
  }

  /// All sections that changed, in order. One without rows, before or after the change, begins where the next one does.
  private let changed: [Changed]
  private var result = Change()
  /// For each entry of the list's `deleted`, its index in that of the result, or the complement of that in `departed`.
  private var deletedPlaces: [Int32] = []
  /// The rows of deleted sections, before the change.
  private var departed: [IndexPath] = []
  /// The indices in `changed` of the sections of the last rows passed to `delete` and `add`.
  private var next = (delete: 0, add: 0)
  /// Whether rows that stay in the list but changed their section were appended to `deleted` and `added`.
  private var isUnsorted = false

  /// - Parameter addition: returns the insertion of the section with an identifier at an index. Called for new sections.
  init(_ changed: [Changed], addition: (_ id: UInt32, _ at: UInt32) -> SectionAddition) {
    self.changed = changed
    for section in changed {
      if section.now == 0 { result.sectionsDeleted.append(section.indexBefore) }
      if section.before == 0 { result.sectionsAdded.append(addition(section.id, section.index)) }
    }
  }

  /// Reserves capacity for so many rows.
  mutating func reserve(deleted: Int, added: Int) {
    deletedPlaces.reserveCapacity(deleted)
    result.added.reserveCapacity(added)
  }

  /// Adds the row that entry `index` of the list's change deletes. Must be called in ascending order.
  mutating func delete(_ row: UInt32, _ index: Int) {
    assert(index == deletedPlaces.count, "an entry is left out")
    while next.delete + 1 < changed.count, changed[next.delete + 1].startBefore <= row { next.delete += 1 }
    deletedPlaces.append(list(row, of: changed[next.delete]))
  }

  /// Lists a row as deleted, or as departed if its section was deleted. Returns its place, as in `deletedPlaces`.
  @inline(__always)
  private mutating func list(_ row: UInt32, of section: Changed) -> Int32 {
    assert(
      row >= section.startBefore && row - section.startBefore < section.before,
      "a row left a section that did not change")
    let path = IndexPath(section: section.indexBefore, row: row - section.startBefore)
    if section.now == 0 {
      departed.append(path)
      return ~Int32(truncatingIfNeeded: departed.count - 1)
    }
    result.deleted.append(path)
    return Int32(truncatingIfNeeded: result.deleted.count - 1)
  }

  /// Adds the row that entry `index` of the list's change adds. Must be called in ascending order.
  mutating func add(_ row: UInt32, _ index: Int) {
    assert(index == result.added.count, "an entry is left out")
    while next.add + 1 < changed.count, changed[next.add + 1].start <= row { next.add += 1 }
    let section = changed[next.add]
    assert(row >= section.start && row - section.start < section.now, "a row entered a section that did not change")
    result.added.append(path(of: row, in: section))
  }

  private func path(of row: UInt32, in section: Changed) -> IndexPath {
    IndexPath(section: section.index, row: row - section.start)
  }

  /// Adds a pair of entries of the list's change. Called in ascending order, after all calls of `delete` and `add`.
  mutating func move(_ move: Move) {
    pair(deletedPlaces[Int(move.deleted)], move.added, keepsElement: move.keepsElement)
  }

  /// Pairs a row that was listed, by its place, with an entry of `added`.
  private mutating func pair(_ place: Int32, _ added: UInt32, keepsElement: Bool) {
    if place >= 0 {
      result.moves.append(Move(deleted: UInt32(place), added: added, keepsElement: keepsElement))
    } else {
      result.transfers.append(Transfer(from: departed[Int(~place)], added: added, keepsElement: keepsElement))
    }
  }

  /// Adds a row that stays in the list with another element. Must be called in ascending order, after all calls of
  /// `delete`, `add` and `move`. Returns false, without any effect, if the section of the row did not change.
  /// - Parameter before: the row before the change.
  mutating func update(_ row: UInt32, from before: UInt32) -> Bool {
    let place = changed.indices.partitionPoint { changed[$0].start <= row } - 1
    guard place >= 0, row - changed[place].start < changed[place].now else { return false }
    let section = changed[place]
    if before >= section.startBefore, before - section.startBefore < section.before {
      result.updated.append(path(of: row, in: section))
      return true
    }
    let deletion = list(before, of: changed[changed.indices.partitionPoint { changed[$0].startBefore <= before } - 1])
    result.added.append(path(of: row, in: section))
    pair(deletion, UInt32(result.added.count - 1), keepsElement: false)
    isUnsorted = true
    return true
  }

  /// Adds a row that stays in a section that did not change.
  mutating func update(_ path: IndexPath) { result.updated.append(path) }

  consuming func finish() -> Change {
    if isUnsorted { sort() }
    return result
  }

  private mutating func sort() {
    let deletedPlaces = Self.sort(&result.deleted)
    let addedPlaces = Self.sort(&result.added)
    for index in result.moves.indices {
      result.moves[index].deleted = deletedPlaces[Int(result.moves[index].deleted)]
      result.moves[index].added = addedPlaces[Int(result.moves[index].added)]
    }
    result.moves.sort { $0.deleted < $1.deleted }
    for index in result.transfers.indices {
      result.transfers[index].added = addedPlaces[Int(result.transfers[index].added)]
    }
    result.transfers.sort { $0.from < $1.from }
  }

  /// Sorts paths. Returns the new index of each former one.
  private static func sort(_ paths: inout [IndexPath]) -> [UInt32] {
    let order = paths.indices.sorted { paths[$0] < paths[$1] }
    var places = [UInt32](repeating: 0, count: order.count)
    for (place, former) in order.enumerated() { places[former] = UInt32(place) }
    paths = order.map { paths[$0] }
    return places
  }
}
