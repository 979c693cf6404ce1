import FeedChange
import FeedJSON

/// Converts the change of one list of rows to the change of the sections that divide it.
///
///     var division = SectionDivision(changed)
///     division.delete(row, 0)              // the entries of the list's change
///     division.add(path, 0)
///     let change = division.finish()
///
/// Sections never change their order among each other. A row that stays in the list but changes its section is a move.
struct SectionDivision {
  /// A section whose rows changed.
  struct Changed {
    let id: UInt32
    let name: String
    /// The row counts before and after the change, not both 0.
    let before: Int
    let now: Int
    /// The index before the change (for a new section, the index that it would have had), and after it.
    let indexBefore: Int
    let index: Int
    /// The number of rows of the list before those of the section, before the change.
    let startBefore: Int
  }

  /// A listed row.
  private struct Listed {
    let path: IndexPath
    /// The number of the pair of a deleted and an added row that are the same row; -1 for none.
    var move: Int
  }

  private let changed: [Changed]
  /// The indices in `changed` of the sections that had rows.
  private let had: [Int]
  private var placeOf: [UInt32: Int] = [:]
  private var deleted: [Listed] = []
  private var added: [Listed] = []
  /// For each entry of the list's `deleted`, its index in this `deleted`; nil for rows of a deleted section.
  private var deletedPlaces: [Int?] = []
  private var result = Change()
  private var moves: [Bool] = []

  /// - Parameter changed: all sections whose rows changed, in their order.
  init(_ changed: [Changed]) {
    self.changed = changed
    had = changed.indices.filter { changed[$0].before > 0 }
    for (place, section) in changed.enumerated() {
      placeOf[section.id] = place
      if section.now == 0 { result.sectionsDeleted.append(UInt32(section.indexBefore)) }
      if section.before == 0 {
        result.sectionsAdded.append(SectionAddition(at: UInt32(section.index), name: section.name))
      }
    }
  }

  var isEmpty: Bool { changed.isEmpty }

  /// The section of a row before the change. It must be in `changed`.
  private func sectionBefore(_ row: Int) -> Changed {
    let place = had.countOfPrefix { changed[$0].startBefore <= row } - 1
    let section = changed[had[place]]
    assert(row < section.startBefore + section.before, "a row left a section that did not change")
    return section
  }

  /// Adds the row that entry `index` of the list's change deletes. Must be called in ascending order.
  mutating func delete(_ row: Int, _ index: Int) {
    assert(index == deletedPlaces.count, "an entry is left out")
    deletedPlaces.append(list(row))
  }

  /// Lists a row as deleted unless its section was deleted. Returns its index.
  private mutating func list(_ row: Int) -> Int? {
    let section = sectionBefore(row)
    if section.now == 0 { return nil }
    let path = IndexPath(section: UInt32(section.indexBefore), row: UInt32(row - section.startBefore))
    deleted.append(Listed(path: path, move: -1))
    return deleted.count - 1
  }

  /// Adds the row that entry `index` of the list's change adds. Must be called in ascending order.
  mutating func add(_ path: IndexPath, _ index: Int) {
    assert(index == added.count, "an entry is left out")
    added.append(Listed(path: path, move: -1))
  }

  /// Adds a pair of entries of the list's change.
  mutating func move(_ move: Move) {
    if let place = deletedPlaces[Int(move.deleted)] { pair(place, Int(move.added), keepsElement: move.keepsElement) }
  }

  private mutating func pair(_ deletion: Int, _ addition: Int, keepsElement: Bool) {
    deleted[deletion].move = moves.count
    added[addition].move = moves.count
    moves.append(keepsElement)
  }

  /// Adds a row that stays in the list with another element. Must be called in ascending order, after all calls of
  /// `delete` and `add`.
  mutating func update(_ path: IndexPath, from row: Int, in section: UInt32) {
    guard let place = placeOf[section] else { return result.updated.append(path) }
    let section = changed[place]
    if section.before > 0, (section.startBefore..<(section.startBefore + section.before)).contains(row) {
      return result.updated.append(path)
    }
    let deletion = list(row)
    added.append(Listed(path: path, move: -1))
    if let deletion { pair(deletion, added.count - 1, keepsElement: false) }
  }

  mutating func finish() -> Change {
    deleted.sort { $0.path < $1.path }
    added.sort { $0.path < $1.path }
    var places = [UInt32](repeating: 0, count: moves.count)
    for (place, row) in added.enumerated() {
      result.added.append(row.path)
      if row.move >= 0 { places[row.move] = UInt32(place) }
    }
    for (place, row) in deleted.enumerated() {
      result.deleted.append(row.path)
      guard row.move >= 0 else { continue }
      result.moves.append(
        Move(deleted: UInt32(place), added: places[row.move], keepsElement: moves[row.move]))
    }
    return result
  }
}
