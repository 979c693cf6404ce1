import FeedChange
import FeedClient
import FeedJSON

/// One feed on the screen of ``LiveDisplay``: a heading above its list, and the state of a pause.
struct LivePane {
  var list: LiveList
  /// The rows shown while the display is paused, and the number of changes since.
  private var paused: (mirror: Mirror, changes: Int)?

  init(_ templates: Templates) { list = LiveList(templates: templates) }

  /// The visible rows: those of the feed or, during a pause, those at its beginning.
  func shown(_ state: WatchState) -> Mirror? { paused?.mirror ?? state.mirror }

  /// Begins or ends a pause.
  mutating func pause(_ isPaused: Bool, _ state: WatchState) {
    paused = isPaused ? state.mirror.map { ($0, 0) } : nil
    if !isPaused, let mirror = state.mirror { list.clamp(to: mirror) }
  }

  /// Records a notification that the mirror has already applied.
  mutating func take(_ notification: Notification, _ delta: Delta?, _ mirror: Mirror?, now: UInt64) {
    // While the display is paused, places refer to the paused rows.
    guard paused == nil else {
      if notification.kind == .delta || notification.kind == .snapshot { paused?.changes += 1 }
      return
    }
    switch notification.kind {
    case .snapshot: list.reset()
    case .delta:
      guard let mirror, let delta else { return }
      list.note(delta.change, revision: delta.revision, sections: mirror.sections.count, now: now)
    case .bookmark, .selection, .bye, .other: return
    }
  }

  /// Returns the heading and the list for an area of this size.
  mutating func lines(
    _ state: WatchState, width: Int, height: Int, focus: LiveFocus, _ palette: Palette
  ) -> [String] {
    let isOneOfMany = focus != .only
    var heading = heading(state, width: width, focus, palette)
    if isOneOfMany { heading.fill() }
    var lines = [heading.text]
    if let mirror = shown(state) {
      lines += list.lines(
        mirror, width: width, height: height - 1, palette: palette, isFocused: focus != .other, fills: isOneOfMany)
    }
    return lines
  }

  private func heading(_ state: WatchState, width: Int, _ focus: LiveFocus, _ palette: Palette) -> LinePainter {
    var line = LinePainter(width: width, palette: palette)
    if focus != .only { line.add(focus == .other ? " " : "▸", .bold) }
    line.add(LinePainter.cut(state.feed.inLine, to: max(width - 2, 1)), focus == .other ? .dim : .bold)
    if case .one(let place, let count) = focus { line.addWhole("  \(grouped(place)) of \(grouped(count))", .dim) }
    if let paused { line.addWhole("  paused, \(counted(paused.changes, "change"))", .updated) }
    if let complaint = state.complaint { line.addWords("  \(complaint)", .error) }
    if let mirror = state.mirror, mirror.progress.isLive {
      line.addWhole("  \(counted(mirror.count, "row"))", .dim)
      line.addWhole("  revision \(grouped(Int(clamping: mirror.progress.revision)))", .dim)
    } else if state.complaint == nil {
      line.addWhole("  loading", .dim)
    }
    if let revision = state.verifiedRevision {
      line.addWhole("  verified at \(grouped(Int(clamping: revision)))", .added)
    }
    if focus != .other { line.addWhole("  ? help", .dim) }
    return line
  }
}

/// The focus of the keyboard, relative to one feed.
enum LiveFocus: Equatable {
  /// There is only one feed.
  case only
  /// This feed has the focus, and all feeds are visible.
  case here
  /// This feed has the focus, and some of the feeds are not visible.
  case one(Int, of: Int)
  /// Another feed has the focus.
  case other
}

/// A text that temporarily covers the list: help, or an element. Lines are wrapped at the width, and the text can be
/// scrolled.
struct TextPage: Equatable {
  private let lines: [String]
  /// The column of the continuation lines of a wrapped line; nil for two columns more than the indentation of the line.
  private let hanging: Int?
  /// The index of the first visible wrapped line.
  private(set) var top = 0

  init(_ lines: [String], hanging: Int? = nil) { (self.lines, self.hanging) = (lines, hanging) }

  /// Returns the lines for a screen of this size.
  func lines(width: Int, height: Int) -> [String] {
    let all = wrapped(width)
    return Array(all[min(top, max(all.count - height, 0))...].prefix(height))
  }

  /// Scrolls. Returns false for a key that closes the page.
  mutating func take(_ key: Key, width: Int, height: Int) -> Bool {
    let (page, count) = (max(height - 1, 1), wrapped(width).count)
    var next = min(top, max(count - height, 0))
    switch key {
    case .down, .character("j"): next += 1
    case .up, .character("k"): next -= 1
    case .pageDown, .character(" "): next += page
    case .pageUp: next -= page
    case .home, .character("g"): next = 0
    case .end, .character("G"): next = count
    default: return false
    }
    top = max(0, min(next, count - height))
    return true
  }

  private func wrapped(_ width: Int) -> [String] { lines.flatMap { Self.wrap($0, width, hanging) } }

  /// Wraps a line between words, or inside a word that is longer than a line, but never inside a character.
  static func wrap(_ line: String, _ width: Int, _ hanging: Int? = nil) -> [String] {
    let line = line.inLine
    guard DisplayWidth.columns(of: line) > width else { return [line] }
    let own = line.prefix { $0 == " " }.count
    var indent = hanging ?? own + 2
    if indent > width / 2 { indent = min(own, width / 2) }
    var lines: [String] = []
    var text = ""
    var columns = 0
    /// The last space at which the line can be broken, and the columns before it.
    var space: (end: String.Index, columns: Int)?
    for character in line {
      let needed = DisplayWidth.columns(of: character)
      if columns + needed > width {
        var rest = ""
        if let at = space?.end {
          rest = String(text[at...].drop { $0 == " " })
          text = String(text[..<at])
        }
        lines.append(text)
        text = String(repeating: " ", count: indent) + rest
        columns = DisplayWidth.columns(of: text)
        space = nil
        if character == " ", rest.isEmpty { continue }
      }
      if character == " ", columns > max(indent, own) { space = (text.endIndex, columns) }
      text.append(character)
      columns += needed
    }
    return lines + [text]
  }
}

/// The changes of the last two seconds, which ``LiveList`` marks and counts in the headings of sections.
struct RecentChanges {
  /// The numbers of recent changes of one section.
  struct Tally: Equatable {
    var added = 0
    var updated = 0
    var moved = 0
    var deleted = 0

    static func + (one: Tally, other: Tally) -> Tally {
      Tally(
        added: one.added + other.added, updated: one.updated + other.updated, moved: one.moved + other.moved,
        deleted: one.deleted + other.deleted)
    }
  }

  /// The changes of a tenth of a second, so that a busy feed has a short list.
  private struct Moment {
    /// The time of the first change.
    var time: UInt64
    /// The revision of the first change.
    var revision: UInt64
    /// One for each present section.
    var tallies: [Tally]
  }

  private static let momentTime: UInt64 = 100_000_000
  /// Nanoseconds for which a change is recent.
  private static let time: UInt64 = 2_000_000_000

  /// Oldest first.
  private var moments: [Moment] = []

  /// The time when the oldest change is no longer recent; nil if there is none.
  var deadline: UInt64? { moments.first.map { $0.time &+ Self.time } }

  /// Whether the change that led to a revision is recent.
  func contains(revision: UInt64) -> Bool { moments.first.map { revision >= $0.revision } ?? false }

  /// The numbers of recent changes of a present section.
  func tally(of section: Int) -> Tally {
    moments.reduce(Tally()) { sum, moment in
      moment.tallies.indices.contains(section) ? sum + moment.tallies[section] : sum
    }
  }

  /// Records a change. A moved row counts neither as added nor as deleted.
  /// - Parameter sections: the number of sections before the change.
  mutating func note(_ change: Change, revision: UInt64, sections: Int, now: UInt64) {
    if moments.last.map({ now >= $0.time &+ Self.momentTime }) ?? true {
      moments.append(Moment(time: now, revision: revision, tallies: Array(repeating: Tally(), count: sections)))
    }
    let last = moments.count - 1
    for path in change.deleted { moments[last].tallies[Int(path.section)].deleted += 1 }
    for move in change.moves {
      moments[last].tallies[Int(change.deleted[Int(move.deleted)].section)].deleted -= 1
    }
    if !change.hasSameSections {
      for place in moments.indices { change.applySections(to: &moments[place].tallies) { _ in Tally() } }
    }
    for path in change.added { moments[last].tallies[Int(path.section)].added += 1 }
    for move in change.moves {
      let section = Int(change.added[Int(move.added)].section)
      moments[last].tallies[section].added -= 1
      moments[last].tallies[section].moved += 1
    }
    for path in change.updated { moments[last].tallies[Int(path.section)].updated += 1 }
  }

  /// Forgets changes that are no longer recent.
  mutating func expire(now: UInt64) {
    let old = moments.prefix { now >= $0.time &+ Self.time }
    moments.removeFirst(old.count)
  }
}
