import FeedChange
import FeedClient
import FeedJSON

/// A feed as a list on a screen: section headings and as many rows as fit, with marks at recent changes and a cursor.
///
/// Without a cursor the list scrolls to the latest change; with a cursor it scrolls only to keep the cursor visible.
/// Pure: returns lines; ``Screen`` writes them.
struct LiveList {
  let templates: Templates
  private var recent = RecentChanges()
  /// The first visible row of each section, and the row to scroll to.
  private var tops: [Int] = []
  private var focus: [Int?] = []
  /// The number of visible rows of each section in the last drawing.
  private var rooms: [Int] = []
  /// The first visible section of the last drawing, and the section to scroll to.
  private var firstSection = 0
  private var focusedSection: Int?
  /// The row that keys move; nil while the list follows the changes.
  private(set) var cursor: IndexPath?
  /// The line of the cursor in its section before the last change.
  private var cursorLine = 0
  /// The changes above and below the visible rows since the list stopped following.
  private var unseen: [Unseen] = []

  private struct Unseen: Equatable {
    var above = 0
    var below = 0

    static func + (one: Unseen, other: Unseen) -> Unseen {
      Unseen(above: one.above + other.above, below: one.below + other.below)
    }
  }

  init(templates: Templates) { self.templates = templates }

  /// The time when the oldest mark expires; nil if nothing is marked.
  var deadline: UInt64? { recent.deadline }

  /// Resets the list after all rows were replaced.
  mutating func reset() {
    recent = RecentChanges()
    if cursor == nil { tops = [] }
    focus = []
    unseen = []
  }

  /// Records a change that was applied to the mirror.
  /// - Parameter sections: the number of sections after the change.
  mutating func note(_ change: Change, revision: UInt64, sections: Int, now: UInt64) {
    let before = max(sections + change.sectionsDeleted.count - change.sectionsAdded.count, 0)
    tops.resize(to: before, with: 0)
    focus.resize(to: before, with: nil)
    recent.note(change, revision: revision, sections: before, now: now)
    if let cursor {
      cursorLine = tops.indices.contains(Int(cursor.section)) ? Int(cursor.row) - tops[Int(cursor.section)] : 0
      leaveRows(of: change)
    }
    if !change.hasSameSections { moveSections(change) }
    guard let row = cursor else {
      for path in change.updated + change.added {
        focus[Int(path.section)] = Int(path.row)
        focusedSection = Int(path.section)
      }
      return
    }
    enterRows(of: change, sections: sections)
    follow(row, through: change)
    countRows(of: change)
  }

  /// Keeps the cursor on its row and in its line. If the row moves out of view, the cursor stays in its place.
  private mutating func follow(_ row: IndexPath, through change: Change) {
    let place = change.position(of: row, followsMoves: false)
    if let moved = change.position(of: row, followsMoves: true), moved != place, isShown(moved) {
      cursor = moved
      return
    }
    cursor = place
    guard let place, Int(place.section) < tops.count else { return }
    tops[Int(place.section)] = max(0, Int(place.row) - cursorLine)
  }

  private func isShown(_ path: IndexPath) -> Bool {
    let section = Int(path.section)
    return section < tops.count && tops[section]..<tops[section] + rooms[section] ~= Int(path.row)
  }

  /// Keeps the visible rows in place when rows above them are deleted, and counts deletions that are out of view.
  private mutating func leaveRows(of change: Change) {
    unseen.resize(to: tops.count, with: Unseen())
    rooms.resize(to: tops.count, with: 0)
    let before = tops
    for path in change.deleted where Int(path.section) < tops.count {
      let (section, row) = (Int(path.section), Int(path.row))
      if row < before[section] {
        tops[section] -= 1
        unseen[section].above += 1
      } else if row >= before[section] + rooms[section] {
        unseen[section].below += 1
      }
    }
    for move in change.moves {
      // A moved row is counted at its target.
      let path = change.deleted[Int(move.deleted)]
      let (section, row) = (Int(path.section), Int(path.row))
      guard section < before.count else { continue }
      if row < before[section] { unseen[section].above -= 1 }
      if row >= before[section] + rooms[section] { unseen[section].below -= 1 }
    }
  }

  /// Keeps the visible rows in place when rows above them are added.
  private mutating func enterRows(of change: Change, sections: Int) {
    tops.resize(to: sections, with: 0)
    rooms.resize(to: sections, with: 0)
    unseen.resize(to: sections, with: Unseen())
    for path in change.added where path.row <= tops[Int(path.section)] { tops[Int(path.section)] += 1 }
  }

  /// Counts additions and updates that are out of view.
  private mutating func countRows(of change: Change) {
    for path in change.updated + change.added {
      let section = Int(path.section)
      if Int(path.row) < tops[section] {
        unseen[section].above += 1
      } else if Int(path.row) >= tops[section] + rooms[section] {
        unseen[section].below += 1
      }
    }
  }

  private mutating func moveSections(_ change: Change) {
    change.applySections(to: &tops) { _ in 0 }
    change.applySections(to: &focus) { _ in nil }
    if cursor != nil {
      change.applySections(to: &unseen) { _ in Unseen() }
      change.applySections(to: &rooms) { _ in 0 }
    }
  }

  /// Removes expired marks.
  mutating func expire(now: UInt64) { recent.expire(now: now) }
}

extension LiveList {
  /// Returns the lines for a screen of this size, at most `height`.
  /// - Parameters:
  ///   - isFocused: whether to show the cursor.
  ///   - fills: whether to fill lines with spaces up to the width.
  mutating func lines(
    _ mirror: Mirror, width: Int, height: Int, palette: Palette, isFocused: Bool = true, fills: Bool = false
  ) -> [String] {
    clamp(to: mirror)
    let counts = mirror.counts
    let wanted = cursor.map { Int($0.section) } ?? focusedSection
    let plan = LiveLayout(counts: counts, height: height, first: firstSection, focus: wanted)
    firstSection = plan.first
    rooms = counts.indices.map { plan.shown.contains($0) ? plan.rooms[$0 - plan.first] : 0 }
    unseen.resize(to: counts.count, with: Unseen())
    tops.resize(to: counts.count, with: 0)
    focus.resize(to: counts.count, with: nil)
    let selected = Set(mirror.selected)
    var lines: [LinePainter] = []
    for place in plan.shown {
      let section = mirror.sections[place]
      let room = rooms[place]
      scroll(place, room: room, count: section.rows.count)
      lines.append(heading(mirror, place, room: room, width: width, palette: palette))
      let top = tops[place]
      for row in top..<min(top + room, section.rows.count) {
        let path = IndexPath(section: UInt32(place), row: UInt32(row))
        let mark = selected.isEmpty ? "" : selected.contains(path) ? "●" : " "
        let isAtCursor = isFocused && path == cursor
        lines.append(line(section.rows[row], mark, isAtCursor: isAtCursor, width: width, palette: palette))
      }
    }
    focusedSection = nil
    if plan.hiddenSections > 0 { lines.append(hiddenSections(plan, counts.count, width, palette)) }
    return lines.map { line in
      var line = line
      if fills { line.fill() }
      return line.text
    }
  }

  private func hiddenSections(_ plan: LiveLayout, _ count: Int, _ width: Int, _ palette: Palette) -> LinePainter {
    let (above, below) = (plan.first, count - plan.shown.upperBound)
    var line = LinePainter(width: width, palette: palette)
    if above == 0 {
      line.addWords("… \(counted(below, "more section"))", .dim)
    } else {
      line.addWords("… \(counted(above, "section")) above, \(grouped(below)) below", .dim)
    }
    let before = unseen[..<plan.first].reduce(Unseen(), +)
    let after = unseen[plan.shown.upperBound...].reduce(Unseen(), +)
    add(Unseen(above: before.above + before.below, below: after.above + after.below), to: &line)
    return line
  }

  private func add(_ unseen: Unseen, to line: inout LinePainter) {
    guard cursor != nil, unseen != Unseen() else { return }
    line.addWhole("  changes ↑\(grouped(unseen.above)) ↓\(grouped(unseen.below))", .updated)
  }

  /// Scrolls the cursor or, without one, the latest changed row into view, by the smallest distance.
  private mutating func scroll(_ section: Int, room: Int, count: Int) {
    var top = tops[section]
    if let cursor, Int(cursor.section) == section { focus[section] = Int(cursor.row) }
    if let row = focus[section], room > 0 {
      if row < top { top = row }
      if row >= top + room { top = row - room + 1 }
    }
    tops[section] = max(0, min(top, count - room))
    focus[section] = nil
  }

  private func heading(_ mirror: Mirror, _ place: Int, room: Int, width: Int, palette: Palette) -> LinePainter {
    let section = mirror.sections[place]
    let count = "  \(grouped(section.rows.count))"
    var line = LinePainter(width: width, palette: palette)
    var name = section.name
    // On a narrow screen, a bin is named without its feed, whose name is above it.
    if DisplayWidth.columns(of: name) + count.count > width - 8, name.hasPrefix("\(mirror.feed)/") {
      name.removeFirst(mirror.feed.count + 1)
    }
    line.add(LinePainter.cut(name.inLine, to: max(width - 1 - count.count, 1)), .title)
    line.addWhole(count, .bold)
    let tally = recent.tally(of: place)
    let signs: [(String, Int, Palette.Role)] = [
      ("+", tally.added, .added), ("~", tally.updated, .updated), (">", tally.moved, .moved),
      ("-", tally.deleted, .deleted),
    ]
    for (sign, count, role) in signs where count > 0 { line.addWhole(" \(sign)\(grouped(count))", role) }
    // Unseen changes are more important than the numbers of rows.
    add(unseen[place], to: &line)
    if room < section.rows.count {
      let last = tops[place] + room
      line.addWhole(room == 0 ? "  (no room)" : "  rows \(grouped(tops[place]))…\(grouped(last - 1))", .dim)
    }
    return line
  }

  /// Formats a row with the cursor or the mark of its change, and the mark of its selection.
  private func line(
    _ row: FeedClient.Row, _ mark: String, isAtCursor: Bool, width: Int, palette: Palette
  ) -> LinePainter {
    var line = LinePainter(width: width, palette: palette)
    switch recent.contains(revision: row.revision) ? row.origin : .snapshot {
    case .snapshot: line.add(" ")
    case .added: line.add("+", .added)
    case .moved: line.add(">", .moved)
    case .updated: line.add("~", .updated)
    }
    if !mark.isEmpty { line.add(mark, .selected) }
    isAtCursor ? line.add("▸", .bold) : line.add(" ")
    if let type = row.type { line.add("\(type) ", .dim) }
    templates.add(row.element, type: row.type, to: &line)
    return line
  }
}

extension LiveList {
  /// The number of rows of a page in the section with the cursor.
  var page: Int {
    guard let cursor, Int(cursor.section) < rooms.count else { return max(rooms.first ?? 1, 1) }
    return max(rooms[Int(cursor.section)] - 1, 1)
  }

  /// Follows the changes again.
  mutating func follow() {
    cursor = nil
    unseen = []
  }

  /// Moves the cursor to an existing row if its row was deleted.
  mutating func clamp(to mirror: Mirror) {
    guard let row = cursor else { return }
    if mirror[row] != nil { return }
    cursor = mirror.count == 0 ? nil : Self.path(min(Self.offset(of: row, in: mirror), mirror.count - 1), in: mirror)
  }

  /// Moves the cursor by rows, across sections. The first move puts it on the first visible row.
  mutating func move(by distance: Int, in mirror: Mirror) {
    guard mirror.count > 0 else { return }
    unseen = []
    guard let row = cursor else {
      let shown = tops.indices.first { $0 < mirror.sections.count && !mirror.sections[$0].rows.isEmpty }
      let first = shown.map { IndexPath(section: UInt32($0), row: UInt32(tops[$0])) }
      cursor = first.flatMap { mirror[$0] == nil ? nil : $0 } ?? Self.path(0, in: mirror)
      if abs(distance) > 1 { move(by: distance, in: mirror) }
      return
    }
    let target = Self.offset(of: row, in: mirror).addingReportingOverflow(distance).partialValue
    cursor = Self.path(max(0, min(target, mirror.count - 1)), in: mirror)
  }

  /// Moves the cursor to the first row of the next or previous section that has rows.
  /// - Returns: false if there is no such section; the cursor then stays.
  @discardableResult
  mutating func moveSection(by step: Int, in mirror: Mirror) -> Bool {
    moveSection(from: cursor.map { Int($0.section) + step } ?? 0, by: step, in: mirror)
  }

  /// Moves the cursor to the first row of the first section that has rows, or of the last one.
  mutating func moveSection(toFirst isFirst: Bool, in mirror: Mirror) {
    _ = moveSection(from: isFirst ? 0 : mirror.sections.count - 1, by: isFirst ? 1 : -1, in: mirror)
  }

  private mutating func moveSection(from start: Int, by step: Int, in mirror: Mirror) -> Bool {
    unseen = []
    var section = start
    while mirror.sections.indices.contains(section) {
      if !mirror.sections[section].rows.isEmpty {
        cursor = IndexPath(section: UInt32(section), row: 0)
        return true
      }
      section += step
    }
    return false
  }

  /// Moves the cursor to the next or previous row whose text contains the words, wrapping around.
  /// - Returns: whether there is one, or there are no words.
  mutating func search(_ words: String, in mirror: Mirror, forward: Bool) -> Bool {
    if words.isEmpty { return true }
    let wanted = words.lowercased()
    let start = cursor.map { Self.offset(of: $0, in: mirror) } ?? (forward ? -1 : 0)
    var matches: [Int] = []
    var offset = 0
    for section in mirror.sections {
      for row in section.rows {
        if text(of: row).lowercased().contains(wanted) { matches.append(offset) }
        offset += 1
      }
    }
    let next = forward ? matches.first { $0 > start } ?? matches.first : matches.last { $0 < start } ?? matches.last
    unseen = []
    guard let next else { return false }
    cursor = Self.path(next, in: mirror)
    return true
  }

  private func text(of row: FeedClient.Row) -> String {
    var line = LinePainter(width: LinePainter.unlimited, palette: Palette(isOn: false))
    templates.add(row.element, type: row.type, to: &line)
    return line.text
  }

  /// The number of rows before a place, in all sections.
  private static func offset(of path: IndexPath, in mirror: Mirror) -> Int {
    mirror.sections.prefix(Int(path.section)).reduce(0) { $0 + $1.rows.count } + Int(path.row)
  }

  /// The place of a row that is counted over all sections.
  private static func path(_ offset: Int, in mirror: Mirror) -> IndexPath? {
    var rest = offset
    for (place, section) in mirror.sections.enumerated() {
      if rest < section.rows.count { return IndexPath(section: UInt32(place), row: UInt32(rest)) }
      rest -= section.rows.count
    }
    return nil
  }
}

extension Change {
  /// The position of a row after the change; for a deleted row, that of the row in its place. O(size of the change).
  fileprivate func position(of path: IndexPath, followsMoves: Bool) -> IndexPath? {
    if followsMoves {
      for move in moves where deleted[Int(move.deleted)] == path { return added[Int(move.added)] }
    }
    var sections = [path.section]
    if !hasSameSections {
      guard !sectionsDeleted.contains(path.section) else { return nil }
      sections[0] -= UInt32(sectionsDeleted.count { $0 < path.section })
      for addition in sectionsAdded where addition.at <= sections[0] { sections[0] += 1 }
    }
    var row = path.row - UInt32(deleted.count { $0.section == path.section && $0.row < path.row })
    for place in added where place.section == sections[0] && place.row <= row { row += 1 }
    return IndexPath(section: sections[0], row: row)
  }
}

extension Array {
  fileprivate mutating func resize(to count: Int, with element: Element) {
    if self.count > count { removeLast(self.count - count) }
    while self.count < count { append(element) }
  }
}
