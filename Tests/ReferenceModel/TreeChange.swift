import FeedChange
import FeedModel
import TestSupport

/// What a change says against what the reference knows to have happened.
struct TreeChange {
  let change: Change
  let before: TreeView
  let after: TreeView
  /// Rows listed as updated that show what they did before, by their tokens.
  private(set) var needless: Set<UInt64> = []

  struct Violation: Error, CustomStringConvertible {
    let description: String
  }

  /// - Throws: what is wrong with the change: it does not lead from one view to the other, pairs rows that are not the
  ///   same, loses the identity of one that is, or lists what did not move among the rows that stay.
  init(_ change: Change, from before: TreeView, to after: TreeView) throws {
    self.change = change
    self.before = before
    self.after = after
    try checkContent()
    try checkIdentity()
    try checkMoves()
    findNeedless()
  }

  private func fail(_ reason: String) -> Violation {
    Violation(description: "\(reason)\n  change: \(change)\n  before: \(before.short)\n  after: \(after.short)")
  }

  /// Applied to what was shown, it gives what is shown.
  private func checkContent() throws {
    // Rows are applied as numbers: those before the change from 0 on, the listed ones below 0.
    let (old, listed) = (before.rows, try listed())
    var next = 0
    var places = before.sections.map { section in
      defer { next += section.rows.count }
      return Array(next..<(next + section.rows.count))
    }
    do {
      try TestSupport.apply(change, to: &places, elements: listed.indices.map { -1 - $0 })
    } catch {
      throw fail("\(error)")
    }
    let rows = places.map { $0.map { $0 < 0 ? listed[-1 - $0] : old[$0] } }
    var names = before.sections.map(\.name)
    change.applySections(to: &names) { $0.name }
    if names != after.sections.map(\.name) { throw fail("the sections are \(names)") }
    let isSame = rows.elementsEqual(after.sections) { rows, section in
      rows.elementsEqual(section.rows) { $0.shows($1) }
    }
    if !isSame { throw fail("the rows are \(rows)") }
  }

  /// The rows after the change that it lists as added and then as updated.
  private func listed() throws -> [TreeRow] {
    try (change.added + change.updated).map { path in
      guard let row = after[path] else { throw fail("\(path) is not there") }
      return row
    }
  }

  /// Exactly the rows that were there before, by their tokens, are where the change says they are. It can't say that of rows
  /// whose section it deletes.
  private func checkIdentity() throws {
    let known = Set(before.sections.flatMap { $0.rows.map(\.token) }).subtracting(departed)
    var tokens = before.sections.map { $0.rows.map(\.token) }
    var placement = change
    placement.updated = []
    var arrivals = [UInt64](repeating: 0, count: change.added.count)
    for move in change.moves {
      arrivals[Int(move.added)] = before[change.deleted[Int(move.deleted)]]?.token ?? 0
    }
    try TestSupport.apply(placement, to: &tokens, elements: arrivals)
    for (section, row) in after.paths {
      let token = after.sections[section].rows[row].token
      let expected = known.contains(token) ? token : 0
      if tokens[section][row] != expected {
        let was = before.path(of: token).map { "\($0)" } ?? "new"
        let said = before.path(of: tokens[section][row]).map { "\($0)" } ?? "new"
        throw fail("the row at [\(section), \(row)] was \(was), the change says \(said)")
      }
    }
  }

  /// No row is listed as moved that stands where it stood among the rows that stay.
  private func checkMoves() throws {
    if change.moves.isEmpty { return }
    let stays = unlisted()
    var sections = before.sections.indices.map { $0 }
    change.applySections(to: &sections) { _ in -1 }
    for move in change.moves {
      let (from, to) = (change.deleted[Int(move.deleted)], change.added[Int(move.added)])
      guard sections[Int(to.section)] == Int(from.section) else { continue }
      let above = before.sections[Int(from.section)].rows[..<Int(from.row)].count { stays.contains($0.token) }
      let below = after.sections[Int(to.section)].rows[..<Int(to.row)].count { stays.contains($0.token) }
      if above == below { throw fail("\(from) did not move to \(to): \(above) rows stay above it") }
    }
  }

  /// The tokens of the rows that keep their places.
  private func unlisted() -> Set<UInt64> {
    var stays = Set(before.sections.flatMap { $0.rows.map(\.token) }).subtracting(departed)
    for path in change.deleted { if let row = before[path] { stays.remove(row.token) } }
    return stays
  }

  /// The tokens of the rows of deleted sections.
  private var departed: Set<UInt64> {
    Set(change.sectionsDeleted.flatMap { before.sections[Int($0)].rows.map(\.token) })
  }

  /// The tokens of the rows of deleted sections that are elsewhere and show what they did before. The change doesn't say whether
  /// they were replaced.
  var unchangedDeparted: Set<UInt64> {
    let (departed, now) = (departed, after.rows)
    return Set(
      before.rows.filter { row in
        departed.contains(row.token) && now.contains { $0.token == row.token && $0.shows(row) }
      }.map(\.token))
  }

  private mutating func findNeedless() {
    if change.updated.isEmpty { return }
    let known = Dictionary(before.sections.flatMap(\.rows).map { ($0.token, $0) }) { first, _ in first }
    for path in change.updated {
      if let row = after[path], let old = known[row.token], old.shows(row) { needless.insert(row.token) }
    }
  }

  /// How many rows a change lists at least that keeps as many rows in place as their order allows.
  func checkFewest() throws {
    for (section, rows) in after.sections.enumerated() {
      guard let old = before.sections.first(where: { $0.name == rows.name }) else { continue }
      let places = Dictionary(old.rows.enumerated().map { ($1.token, $0) }) { first, _ in first }
      let common = rows.rows.compactMap { places[$0.token] }
      let added = change.added.count { Int($0.section) == section }
      if rows.rows.count - added < Self.longestRising(common) { throw fail("more rows could stay in \(rows.name)") }
    }
  }

  /// The length of a longest rising subsequence.
  static func longestRising(_ values: [Int]) -> Int {
    var tails: [Int] = []
    for value in values {
      if let place = tails.firstIndex(where: { $0 >= value }) { tails[place] = value } else { tails.append(value) }
    }
    return tails.count
  }
}

extension TreeView {
  subscript(path: IndexPath) -> TreeRow? {
    guard sections.indices.contains(Int(path.section)),
      sections[Int(path.section)].rows.indices.contains(Int(path.row))
    else { return nil }
    return sections[Int(path.section)].rows[Int(path.row)]
  }

  /// Every place there is.
  var paths: [(section: Int, row: Int)] {
    sections.indices.flatMap { section in sections[section].rows.indices.map { (section, $0) } }
  }

  func path(of token: UInt64) -> [Int]? {
    paths.first { sections[$0.section].rows[$0.row].token == token }.map { [$0.section, $0.row] }
  }

  /// For messages.
  var short: String {
    sections.map { section in
      "\(section.name)[" + section.rows.map { "\($0.text)\($0.type)#\($0.token % 1000)" }.joined(separator: " ") + "]"
    }.joined(separator: " ")
  }
}
