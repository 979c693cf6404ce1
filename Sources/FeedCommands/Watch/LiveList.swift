import FeedChange
import FeedClient
import FeedJSON

/// A feed as a list on a screen: section headings and as many rows as fit, with marks at recent changes and a cursor.
///
/// Without a cursor the list scrolls to the latest change; with a cursor it scrolls only to keep the cursor visible.
/// Pure: returns lines; ``Screen`` writes them.
struct LiveList {
  /// Nanoseconds for which a change stays marked.
  static let markTime: UInt64 = 2_000_000_000

  /// The numbers of recent changes of one section, for its heading.
  private struct Tally: Equatable {
    var added = 0
    var updated = 0
    var moved = 0
    var deleted = 0
  }

  /// The changes of a tenth of a second, so that a busy feed has a short list.
  private struct Moment {
    /// The time of the first change.
    var time: UInt64
    /// The revision of the first change.
    var revision: UInt64
    var tallies: [Tally]
  }

  private static let momentTime: UInt64 = 100_000_000

  let templates: Templates
  /// Recent changes, oldest first.
  private var recent: [Moment] = []
  /// The first visible row of each section, and the row to scroll to.
  private var tops: [Int] = []
  private var focus: [Int?] = []
  /// The number of visible rows of each section in the last drawing.
  private var rooms: [Int] = []
  /// The row that keys move; nil while the list follows the changes.
  private(set) var cursor: IndexPath?
  /// The numbers of rows changed above and below the visible rows since the list stopped following.
  private var unseen: [(above: Int, below: Int)] = []

  init(templates: Templates) { self.templates = templates }

  /// The time when the oldest mark expires; nil if nothing is marked.
  var deadline: UInt64? { recent.first.map { $0.time &+ Self.markTime } }

  /// Resets the list after all rows were replaced.
  mutating func reset() {
    recent = []
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
    if recent.last.map({ now >= $0.time &+ Self.momentTime }) ?? true {
      recent.append(Moment(time: now, revision: revision, tallies: Array(repeating: Tally(), count: before)))
    }
    let last = recent.count - 1
    for path in change.deleted { recent[last].tallies[Int(path.section)].deleted += 1 }
    // A moved row counts neither as added nor as deleted.
    for move in change.moves { recent[last].tallies[Int(change.deleted[Int(move.deleted)].section)].deleted -= 1 }
    if !change.sectionsDeleted.isEmpty || !change.sectionsAdded.isEmpty { moveSections(change) }
    for path in change.added { recent[last].tallies[Int(path.section)].added += 1 }
    for move in change.moves {
      recent[last].tallies[Int(change.added[Int(move.added)].section)].added -= 1
      recent[last].tallies[Int(change.added[Int(move.added)].section)].moved += 1
    }
    for path in change.updated { recent[last].tallies[Int(path.section)].updated += 1 }
    guard let row = cursor else {
      for path in change.updated + change.added { focus[Int(path.section)] = Int(path.row) }
      return
    }
    cursor = change.position(of: row)
    unseen.resize(to: sections, with: (0, 0))
    for path in change.updated + change.added {
      let section = Int(path.section)
      guard section < tops.count, section < unseen.count, section < rooms.count else { continue }
      if Int(path.row) < tops[section] { unseen[section].above += 1 }
      if Int(path.row) >= tops[section] + rooms[section] { unseen[section].below += 1 }
    }
  }

  private mutating func moveSections(_ change: Change) {
    change.applySections(to: &tops) { _ in 0 }
    change.applySections(to: &focus) { _ in nil }
    for place in recent.indices { change.applySections(to: &recent[place].tallies) { _ in Tally() } }
  }

  /// Removes expired marks.
  mutating func expire(now: UInt64) {
    let old = recent.prefix { now >= $0.time &+ Self.markTime }
    recent.removeFirst(old.count)
  }
}

extension LiveList {
  /// Returns the lines for a screen of this size, at most `height`.
  mutating func lines(_ mirror: Mirror, width: Int, height: Int, palette: Palette) -> [String] {
    let plan = LiveLayout(counts: mirror.counts, height: height)
    rooms = plan.rooms
    clamp(to: mirror)
    unseen.resize(to: mirror.sections.count, with: (0, 0))
    let selected = Set(mirror.selected)
    tops.resize(to: mirror.sections.count, with: 0)
    focus.resize(to: mirror.sections.count, with: nil)
    var lines: [String] = []
    for (place, room) in plan.rooms.enumerated() {
      let section = mirror.sections[place]
      scroll(place, room: room, count: section.rows.count)
      lines.append(heading(section, place, room: room, width: width, palette: palette))
      let top = tops[place]
      for row in top..<min(top + room, section.rows.count) {
        let path = IndexPath(section: UInt32(place), row: UInt32(row))
        let mark = selected.isEmpty ? "" : selected.contains(path) ? "●" : " "
        lines.append(line(section.rows[row], mark, isAtCursor: path == cursor, width: width, palette: palette))
      }
    }
    if plan.hiddenSections > 0 {
      var line = LinePainter(width: width, palette: palette)
      line.add("… \(Grouped.text(plan.hiddenSections, "more section"))", .dim)
      lines.append(line.text)
    }
    return lines
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

  private func heading(
    _ section: Mirror.Section, _ place: Int, room: Int, width: Int, palette: Palette
  ) -> String {
    var line = LinePainter(width: width, palette: palette)
    line.add(section.name, .title)
    line.addWhole("  \(Grouped.text(section.rows.count))", .bold)
    var tally = Tally()
    for moment in recent where moment.tallies.indices.contains(place) {
      tally.added += moment.tallies[place].added
      tally.updated += moment.tallies[place].updated
      tally.moved += moment.tallies[place].moved
      tally.deleted += moment.tallies[place].deleted
    }
    let signs: [(String, Int, Palette.Role)] = [
      ("+", tally.added, .added), ("~", tally.updated, .updated), (">", tally.moved, .moved),
      ("-", tally.deleted, .deleted),
    ]
    for (sign, count, role) in signs where count > 0 { line.addWhole(" \(sign)\(Grouped.text(count))", role) }
    if room < section.rows.count {
      let last = tops[place] + room
      line.addWhole(
        room == 0 ? "  (no room)" : "  rows \(Grouped.text(tops[place]))…\(Grouped.text(last - 1))", .dim)
    }
    if cursor != nil, unseen[place].above + unseen[place].below > 0 {
      let (above, below) = unseen[place]
      line.addWhole("  changes ↑\(Grouped.text(above)) ↓\(Grouped.text(below))", .updated)
    }
    return line.text
  }

  /// Formats a row with the cursor or the mark of its change, and the mark of its selection.
  private func line(
    _ row: FeedClient.Row, _ mark: String, isAtCursor: Bool, width: Int, palette: Palette
  ) -> String {
    var line = LinePainter(width: width, palette: palette)
    let isRecent = recent.first.map { row.revision >= $0.revision } ?? false
    switch isRecent ? row.origin : .snapshot {
    case .snapshot: line.add(" ")
    case .added: line.add("+", .added)
    case .moved: line.add(">", .moved)
    case .updated: line.add("~", .updated)
    }
    if !mark.isEmpty { line.add(mark, .selected) }
    isAtCursor ? line.add("▸", .bold) : line.add(" ")
    if let type = row.type { line.add("\(type) ", .dim) }
    row.element.withUnsafeBytes { bytes in
      var scanner = JSONScanner(maxDepth: 10_100)
      if let view = try? scanner.scan(bytes) { templates.add(view, type: row.type, to: &line) }
    }
    return line.text
  }
}

/// Moving the cursor.
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
  mutating func moveSection(by step: Int, in mirror: Mirror) {
    unseen = []
    var section = cursor.map { Int($0.section) + step } ?? 0
    while mirror.sections.indices.contains(section) {
      if !mirror.sections[section].rows.isEmpty {
        cursor = IndexPath(section: UInt32(section), row: 0)
        return
      }
      section += step
    }
  }

  /// Moves the cursor to the next or previous row whose text contains the words, wrapping around.
  mutating func search(_ words: String, in mirror: Mirror, forward: Bool) {
    guard !words.isEmpty, mirror.count > 0 else { return }
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
    if let next { cursor = Self.path(next, in: mirror) }
    unseen = []
  }

  private func text(of row: FeedClient.Row) -> String {
    var line = LinePainter(width: LinePainter.unlimited, palette: Palette(isOn: false))
    row.element.withUnsafeBytes { bytes in
      var scanner = JSONScanner(maxDepth: 10_100)
      if let view = try? scanner.scan(bytes) { templates.add(view, type: row.type, to: &line) }
    }
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
  fileprivate func position(of path: IndexPath) -> IndexPath? {
    for move in moves where deleted[Int(move.deleted)] == path { return added[Int(move.added)] }
    var sections = [path.section]
    if !sectionsDeleted.isEmpty || !sectionsAdded.isEmpty {
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

/// The number of visible rows of each section. Every section has a heading. Short sections are complete, and long ones
/// share the rest equally.
struct LiveLayout: Equatable {
  /// The number of visible rows of each section whose heading fits.
  private(set) var rooms: [Int] = []
  /// The number of sections that do not fit.
  private(set) var hiddenSections = 0

  init(counts: [Int], height: Int) {
    // One line shows the number of hidden sections.
    let shown = counts.count <= height ? counts.count : max(height - 1, 0)
    hiddenSections = counts.count - shown
    var left = max(height - shown - (hiddenSections > 0 ? 1 : 0), 0)
    rooms = [Int](repeating: 0, count: shown)
    var open = Array(0..<shown).sorted { counts[$0] < counts[$1] }[...]
    // Shortest section first: the rows that it does not need are for longer ones.
    while let section = open.first {
      rooms[section] = min(counts[section], left / open.count)
      left -= rooms[section]
      open = open.dropFirst()
    }
    // Distributes the remainder of the division.
    for section in 0..<shown where left > 0 && rooms[section] < counts[section] {
      rooms[section] += 1
      left -= 1
    }
  }
}
