import FeedChange
import FeedClient
import FeedJSON

/// A feed as a list on a screen: its sections with their names, their rows with signs where something has just changed,
/// as many as fit. Pure: it makes lines; ``Screen`` puts them on a terminal.
struct LiveList {
  /// How long a change stays marked.
  static let markTime: UInt64 = 2_000_000_000

  /// What changed in one section lately, for its heading.
  private struct Tally: Equatable {
    var added = 0
    var updated = 0
    var moved = 0
    var deleted = 0
  }

  /// The changes of a short time, counted together so that a busy feed does not make a long list.
  private struct Moment {
    /// When the first of them came.
    var time: UInt64
    /// The revision of the first of them.
    var revision: UInt64
    var tallies: [Tally]
  }

  private static let momentTime: UInt64 = 100_000_000

  let templates: Templates
  /// Recent changes, oldest first.
  private var recent: [Moment] = []
  /// The first row shown of each section, and the row that must be in sight.
  private var tops: [Int] = []
  private var focus: [Int?] = []

  init(templates: Templates) { self.templates = templates }

  /// When a mark goes out; nil when nothing is marked.
  var deadline: UInt64? { recent.first.map { $0.time &+ Self.markTime } }

  /// The list was replaced as a whole.
  mutating func reset() {
    recent = []
    tops = []
    focus = []
  }

  /// A change, which fits the feed, has been applied to the mirror.
  /// - Parameter sections: how many there are now.
  mutating func note(_ change: Change, revision: UInt64, sections: Int, now: UInt64) {
    let before = max(sections + change.sectionsDeleted.count - change.sectionsAdded.count, 0)
    tops.resize(to: before, with: 0)
    focus.resize(to: before, with: nil)
    if recent.last.map({ now >= $0.time &+ Self.momentTime }) ?? true {
      recent.append(Moment(time: now, revision: revision, tallies: Array(repeating: Tally(), count: before)))
    }
    let last = recent.count - 1
    for path in change.deleted { recent[last].tallies[Int(path.section)].deleted += 1 }
    // A row that moved neither came nor went.
    for move in change.moves { recent[last].tallies[Int(change.deleted[Int(move.deleted)].section)].deleted -= 1 }
    if !change.sectionsDeleted.isEmpty || !change.sectionsAdded.isEmpty { moveSections(change) }
    for path in change.added { recent[last].tallies[Int(path.section)].added += 1 }
    for move in change.moves {
      recent[last].tallies[Int(change.added[Int(move.added)].section)].added -= 1
      recent[last].tallies[Int(change.added[Int(move.added)].section)].moved += 1
    }
    for path in change.updated { recent[last].tallies[Int(path.section)].updated += 1 }
    for path in change.updated + change.added { focus[Int(path.section)] = Int(path.row) }
  }

  private mutating func moveSections(_ change: Change) {
    change.applySections(to: &tops) { _ in 0 }
    change.applySections(to: &focus) { _ in nil }
    for place in recent.indices { change.applySections(to: &recent[place].tallies) { _ in Tally() } }
  }

  /// Forgets marks whose time is over.
  mutating func expire(now: UInt64) {
    let old = recent.prefix { now >= $0.time &+ Self.markTime }
    recent.removeFirst(old.count)
  }
}

extension LiveList {
  /// The lines of the list on a screen of that size, at most `height` of them.
  mutating func lines(_ mirror: Mirror, width: Int, height: Int, palette: Palette) -> [String] {
    let plan = LiveLayout(counts: mirror.counts, height: height)
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
        lines.append(line(section.rows[row], mark, width: width, palette: palette))
      }
    }
    if plan.hiddenSections > 0 {
      var line = LinePainter(width: width, palette: palette)
      line.add("… \(plan.hiddenSections) more sections", .dim)
      lines.append(line.text)
    }
    return lines
  }

  /// Brings the row that changed last into sight, moving as little as possible.
  private mutating func scroll(_ section: Int, room: Int, count: Int) {
    var top = tops[section]
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
    line.add("  \(Grouped.text(section.rows.count))", .bold)
    var tally = Tally()
    for moment in recent where moment.tallies.indices.contains(place) {
      tally.added += moment.tallies[place].added
      tally.updated += moment.tallies[place].updated
      tally.moved += moment.tallies[place].moved
      tally.deleted += moment.tallies[place].deleted
    }
    if tally.added > 0 { line.add(" +\(tally.added)", .added) }
    if tally.updated > 0 { line.add(" ~\(tally.updated)", .updated) }
    if tally.moved > 0 { line.add(" >\(tally.moved)", .moved) }
    if tally.deleted > 0 { line.add(" -\(tally.deleted)", .deleted) }
    if room < section.rows.count {
      let last = tops[place] + room
      line.add(room == 0 ? "  (no room)" : "  rows \(tops[place])…\(last - 1)", .dim)
    }
    return line.text
  }

  /// A row behind the sign of its change and the mark of its selection.
  private func line(_ row: Row, _ mark: String, width: Int, palette: Palette) -> String {
    var line = LinePainter(width: width, palette: palette)
    let isRecent = recent.first.map { row.revision >= $0.revision } ?? false
    switch isRecent ? row.origin : .snapshot {
    case .snapshot: line.add(" ")
    case .added: line.add("+", .added)
    case .moved: line.add(">", .moved)
    case .updated: line.add("~", .updated)
    }
    if !mark.isEmpty { line.add(mark, .selected) }
    line.add(" ")
    if let type = row.type { line.add("\(type) ", .dim) }
    row.element.withUnsafeBytes { bytes in
      var scanner = JSONScanner(maxDepth: 10_100)
      if let view = try? scanner.scan(bytes) { templates.add(view, type: row.type, to: &line) }
    }
    return line.text
  }
}

extension Array {
  fileprivate mutating func resize(to count: Int, with element: Element) {
    if self.count > count { removeLast(self.count - count) }
    while self.count < count { append(element) }
  }
}

/// How many rows of each section a screen shows: every section its heading, and the rest shared so that short sections
/// are whole and long ones get equal parts.
struct LiveLayout: Equatable {
  /// The rows shown of each section whose heading fits.
  private(set) var rooms: [Int] = []
  /// How many sections have no place at all.
  private(set) var hiddenSections = 0

  init(counts: [Int], height: Int) {
    // A line is needed to say that sections are hidden.
    let shown = counts.count <= height ? counts.count : max(height - 1, 0)
    hiddenSections = counts.count - shown
    var left = max(height - shown - (hiddenSections > 0 ? 1 : 0), 0)
    rooms = [Int](repeating: 0, count: shown)
    var open = Array(0..<shown).sorted { counts[$0] < counts[$1] }[...]
    // The shortest first: what one does not need goes to those that are longer.
    while let section = open.first {
      rooms[section] = min(counts[section], left / open.count)
      left -= rooms[section]
      open = open.dropFirst()
    }
    // What division left over.
    for section in 0..<shown where left > 0 && rooms[section] < counts[section] {
      rooms[section] += 1
      left -= 1
    }
  }
}
