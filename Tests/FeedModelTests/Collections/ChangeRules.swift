import TestSupport

@testable import FeedChange
@testable import FeedModel

/// Checks that a change obeys `Protocol/README.md`, "The change".
extension CollectionPair {
  /// A row as compared by the checks.
  private struct Seen: Equatable {
    var birth: Int
    var text: String
    var type: String?
  }

  private static func seen(_ state: CollectionReference) -> [[Seen]] {
    state.bins.map { bin in
      bin.map { birth in
        let text = state.element(birth).text
        return Seen(birth: birth, text: text, type: state.rules.type(of: text))
      }
    }
  }

  /// Checks that a change leads from an earlier state to the present one, is well formed, lists no unchanged row, and pairs
  /// the deleted and added positions of a moved row.
  ///
  /// - Parameters:
  ///   - isSingle: at most one element moved, or all were compared: as few rows as possible must be listed.
  ///   - isPaired: every moved row must be paired.
  ///   - isExact: no unchanged row may be listed.
  func check(
    _ change: Change, from before: CollectionReference, _ what: String, isSingle: Bool = false, isPaired: Bool = false,
    isExact: Bool = true
  ) throws {
    func fail(_ problem: String) -> Mismatch {
      Mismatch("\(problem): \(what)\n\(change)\nfrom \(Self.seen(before))\nto \(Self.seen(reference))")
    }
    let (old, new) = (Self.seen(before), Self.seen(reference))
    var rows = old
    let elements = (change.added + change.updated).map { new[Int($0.section)][Int($0.row)] }
    do { try TestSupport.apply(change, to: &rows, elements: elements) } catch { throw fail("\(error)") }
    guard rows == new else { throw fail("the change does not lead to the present state") }
    try checkMoves(change, old, new, fail)
    if !isExact { return }
    try checkSections(change, from: before, fail)
    let sections = survivingSections(change, old.count)
    for (from, to) in sections {
      let moved = try checkRows(change, (old[from], from), (new[to], to), isPaired, fail)
      if isSingle && moved != Self.fewestMoves(old[from], new[to]) {
        throw fail("\(moved) moved rows are not the fewest possible")
      }
    }
  }

  private func checkMoves(
    _ change: Change, _ old: [[Seen]], _ new: [[Seen]], _ fail: (String) -> Mismatch
  ) throws {
    for move in change.moves {
      let (source, target) = (change.deleted[Int(move.deleted)], change.added[Int(move.added)])
      guard old[Int(source.section)][Int(source.row)].birth == new[Int(target.section)][Int(target.row)].birth else {
        throw fail("a move pairs different elements")
      }
    }
  }

  private func checkSections(_ change: Change, from before: CollectionReference, _ fail: (String) -> Mismatch) throws {
    var names = before.rules.bins.map { "c/" + $0.name }
    let common = before.rules.bins.compactMap { bin in reference.rules.bins.firstIndex { $0.name == bin.name } }
    change.applySections(to: &names) { $0.name }
    guard names == reference.rules.bins.map({ "c/" + $0.name }) else { throw fail("the sections are \(names)") }
    let stay = before.rules.bins.count - change.sectionsDeleted.count
    guard stay == longestRun(common) else { throw fail("\(stay) remaining sections are not the most possible") }
  }

  /// Returns the sections that stay, each with its index before and after.
  private func survivingSections(_ change: Change, _ count: Int) -> [(Int, Int)] {
    let gone = Set(change.sectionsDeleted.map(Int.init))
    let come = Set(change.sectionsAdded.map { Int($0.at) })
    return Array(zip((0..<count).filter { !gone.contains($0) }, reference.bins.indices.filter { !come.contains($0) }))
  }

  /// Checks the rows of one section. Returns the number of listed rows that stayed in it.
  private func checkRows(
    _ change: Change, _ before: (rows: [Seen], section: Int), _ after: (rows: [Seen], section: Int), _ isPaired: Bool,
    _ fail: (String) -> Mismatch
  ) throws -> Int {
    let (old, new) = (before.rows, after.rows)
    func rows(_ paths: [IndexPath], _ section: Int) -> Set<Int> {
      Set(paths.filter { Int($0.section) == section }.map { Int($0.row) })
    }
    let (deleted, added) = (rows(change.deleted, before.section), rows(change.added, after.section))
    let updated = rows(change.updated, after.section)
    for (source, target) in zip(
      old.indices.filter { !deleted.contains($0) }, new.indices.filter { !added.contains($0) })
    {
      guard old[source].birth == new[target].birth else { throw fail("a row became another element") }
      let isSame = old[source].text == new[target].text && old[source].type == new[target].type
      guard isSame != updated.contains(target) else { throw fail("updated is wrong about \(after.section),\(target)") }
    }
    var moved = 0
    for source in deleted {
      guard let target = new.firstIndex(where: { $0.birth == old[source].birth }) else { continue }
      moved += 1
      // Its position among the unlisted rows must differ.
      let place = (0..<source).count { !deleted.contains($0) }
      guard place != (0..<target).count(where: { !added.contains($0) }) else {
        throw fail("a row that kept its position is listed: \(before.section),\(source)")
      }
      let isListed = change.moves.contains { move in
        let (from, to) = (change.deleted[Int(move.deleted)], change.added[Int(move.added)])
        return from == IndexPath(section: UInt32(before.section), row: UInt32(source))
          && to == IndexPath(section: UInt32(after.section), row: UInt32(target))
      }
      guard isListed || !isPaired else { throw fail("a moved row is not paired: \(before.section),\(source)") }
    }
    return moved
  }

  /// Returns the smallest number of rows that must be listed of those that stayed in a section.
  private static func fewestMoves(_ old: [Seen], _ new: [Seen]) -> Int {
    let order = old.compactMap { row in new.firstIndex { $0.birth == row.birth } }
    return order.count - longestRun(order)
  }
}

/// Returns the length of a longest increasing subsequence in quadratic time.
func longestRun(_ values: [Int]) -> Int {
  var best: [Int] = []
  for (place, value) in values.enumerated() {
    best.append(1 + ((0..<place).filter { values[$0] < value }.map { best[$0] }.max() ?? 0))
  }
  return best.max() ?? 0
}
