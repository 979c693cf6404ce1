import FeedChange
import FeedJSON

/// Converts the change of one list of rows to the change of the sections that divide it.
///
///     var division = SectionDivision(changed, into: change) { name of changed[$0] }
///     division.delete(row, 0)              // the entries of the list's change
///     division.add(row, 0)
///     let change = division.finish()
///
/// Sections never change their order among each other. A row that stays in the list but changes its section is a move.
struct SectionDivision {
  /// A section whose rows changed.
  struct Changed {
    /// The row counts before and after the change, not both 0.
    let before: Int
    let now: Int
    /// The index before the change (for a new section, the index that it would have had), and after it.
    let indexBefore: Int
    let index: Int
    /// The number of rows of the list before those of the section, before the change and after it.
    let startBefore: Int
    let start: Int
  }

  /// A listed row.
  private struct Listed {
    let path: IndexPath
    /// The number of the pair of a deleted and an added row that are the same row; -1 for none.
    var move: Int
  }

  /// The sections that had rows, and those that have rows, in order.
  private let had: [Changed]
  private let have: [Changed]
  private var deleted: [Listed] = []
  private var added: [Listed] = []
  /// For each entry of the list's `deleted`, its index in this `deleted`; -1 for rows of a deleted section.
  private var deletedPlaces: [Int] = []
  /// The sections of the last rows passed to `delete` and `add`.
  private var next = (had: 0, have: 0)
  private var result = Change()
  private var moves: [Bool] = []

  /// - Parameters:
  ///   - changed: all sections whose rows changed, in their order.
  ///   - name: returns the name of the section at an index of `changed`. Called for new sections.
  init(_ changed: [Changed], name: (Int) -> String) {
    had = changed.filter { $0.before > 0 }
    have = changed.filter { $0.now > 0 }
    for (place, section) in changed.enumerated() {
      if section.now == 0 { result.sectionsDeleted.append(UInt32(section.indexBefore)) }
      if section.before == 0 {
        result.sectionsAdded.append(SectionAddition(at: UInt32(section.index), name: name(place)))
      }
    }
  }

  /// Reserves capacity for so many rows.
  mutating func reserve(deleted: Int, added: Int) {
    deletedPlaces.reserveCapacity(deleted)
    self.added.reserveCapacity(added)
  }

  /// Adds the row that entry `index` of the list's change deletes. Must be called in ascending order.
  mutating func delete(_ row: Int, _ index: Int) {
    assert(index == deletedPlaces.count, "an entry is left out")
    while next.had + 1 < had.count, had[next.had + 1].startBefore <= row { next.had += 1 }
    deletedPlaces.append(list(row, of: had[next.had]))
  }

  /// Lists a row as deleted unless its section was deleted. Returns its index, or -1.
  private mutating func list(_ row: Int, of section: Changed) -> Int {
    assert((0..<section.before).contains(row - section.startBefore), "a row left a section that did not change")
    if section.now == 0 { return -1 }
    let path = IndexPath(section: UInt32(section.indexBefore), row: UInt32(row - section.startBefore))
    deleted.append(Listed(path: path, move: -1))
    return deleted.count - 1
  }

  /// Adds the row that entry `index` of the list's change adds. Must be called in ascending order.
  mutating func add(_ row: Int, _ index: Int) {
    assert(index == added.count, "an entry is left out")
    while next.have + 1 < have.count, have[next.have + 1].start <= row { next.have += 1 }
    let section = have[next.have]
    assert((0..<section.now).contains(row - section.start), "a row entered a section that did not change")
    added.append(Listed(path: path(of: row, in: section), move: -1))
  }

  private func path(of row: Int, in section: Changed) -> IndexPath {
    IndexPath(section: UInt32(section.index), row: UInt32(row - section.start))
  }

  /// Adds a pair of entries of the list's change.
  mutating func move(_ move: Move) {
    let place = deletedPlaces[Int(move.deleted)]
    if place >= 0 { pair(place, Int(move.added), keepsElement: move.keepsElement) }
  }

  private mutating func pair(_ deletion: Int, _ addition: Int, keepsElement: Bool) {
    deleted[deletion].move = moves.count
    added[addition].move = moves.count
    moves.append(keepsElement)
  }

  /// Adds a row that stays in the list with another element. Must be called in ascending order, after all calls of
  /// `delete` and `add`. Returns false, without any effect, if the section of the row did not change.
  ///
  /// - Parameter before: the row before the change.
  mutating func update(_ row: Int, from before: Int) -> Bool {
    let place = have.countOfPrefix { $0.start <= row } - 1
    guard place >= 0, row - have[place].start < have[place].now else { return false }
    let section = have[place]
    if (0..<section.before).contains(before - section.startBefore) {
      result.updated.append(path(of: row, in: section))
      return true
    }
    let deletion = list(before, of: had[had.countOfPrefix { $0.startBefore <= before } - 1])
    added.append(Listed(path: path(of: row, in: section), move: -1))
    if deletion >= 0 { pair(deletion, added.count - 1, keepsElement: false) }
    return true
  }

  /// Adds a row that stays in a section that did not change.
  mutating func update(_ path: IndexPath) { result.updated.append(path) }

  consuming func finish() -> Change {
    // Both are ascending already unless rows that stay in the list changed their section.
    deleted.sort { $0.path < $1.path }
    added.sort { $0.path < $1.path }
    var places = [UInt32](repeating: 0, count: moves.count)
    result.added.reserveCapacity(added.count)
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
