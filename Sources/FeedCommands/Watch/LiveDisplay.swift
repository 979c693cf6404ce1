import FeedClient
import FeedJSON
import FeedSystem

/// `watch` on a terminal: shows feeds as lists side by side that are redrawn in place and scrolled with keys.
final class LiveDisplay: WatchDisplay {
  /// The content of the screen.
  private enum View: Equatable {
    case rows
    /// Help, or an element.
    case text(TextPage)
    /// The lists, while a search text is typed.
    case search(String)
  }

  /// The minimum nanoseconds between two drawings (30 a second).
  private static let interval: UInt64 = 33_000_000
  /// The minimum width of a feed in columns. Feeds that do not fit are not shown.
  private static let leastWidth = 16
  private static let separator = " │ "

  private let console: Console
  private let session: TerminalSession
  private var panes: [LivePane]
  /// The index of the feed that has the focus, which receives the keys.
  private var focus = 0
  private var view = View.rows
  private var sought = ""
  /// Whether the last key was a search that found nothing.
  private var hasNoMatch = false
  private var isPaused = false
  private var isDirty = true
  private var drawnAt: UInt64 = 0
  private var lastComplaints: [String?] = []

  init(_ console: Console, _ environment: Environment, _ settings: WatchSettings) throws(Failure) {
    self.console = console
    session = try TerminalSession(console, environment)
    panes = settings.feeds.map { _ in LivePane(settings.templates) }
  }

  var needsMirror: Bool { true }
  var countsStates: Bool { true }
  var rowNeeds: RowNeeds { .none }
  var needsIDs: Bool { false }
  var descriptors: [Int32] { session.descriptors }
  var deadline: UInt64? { isDirty ? drawnAt &+ Self.interval : panes.compactMap(\.list.deadline).min() }

  func take(
    _ notification: Notification, _ delta: Delta?, _ news: RowNews?, _ mirror: Mirror?, feed: Int, now: UInt64
  ) -> Bool {
    isDirty = true
    panes[feed].take(notification, delta, mirror, now: now)
    return true
  }

  func update(_ feeds: [WatchState], now: UInt64) throws(Failure) {
    for place in panes.indices {
      guard let end = panes[place].list.deadline, now >= end else { continue }
      panes[place].list.expire(now: now)
      isDirty = true
    }
    let complaints = feeds.flatMap { [$0.complaint, $0.verifiedRevision.map { "\($0)" }] }
    if complaints != lastComplaints { isDirty = true }
    guard isDirty, now >= drawnAt &+ Self.interval else { return }
    (isDirty, drawnAt, lastComplaints) = (false, now, complaints)
    let (width, height) = session.size
    try session.draw(lines(feeds, width: width, height: height))
  }

  private func lines(_ feeds: [WatchState], width: Int, height: Int) -> [String] {
    switch view {
    case .text(let page): return page.lines(width: width, height: height)
    case .rows:
      guard hasNoMatch else { return lists(feeds, width: width, height: height) }
      return lists(feeds, width: width, height: height, above: "no match for '\(sought)'")
    case .search(let text): return lists(feeds, width: width, height: height, above: "/\(text)█")
    }
  }

  /// Returns the lines of the feeds above a last line.
  private func lists(_ feeds: [WatchState], width: Int, height: Int, above text: String) -> [String] {
    var last = LinePainter(width: width, palette: Palette(isOn: false))
    last.add(text)
    let lines = lists(feeds, width: width, height: height - 1)
    return lines + [String](repeating: "", count: max(height - 1 - lines.count, 0)) + [last.text]
  }

  /// Returns the lines of the feeds side by side: as many as fit, around the one with the focus.
  /// - Parameter hasKeys: whether the feed with the focus is marked.
  private func lists(_ feeds: [WatchState], width: Int, height: Int, hasKeys: Bool = true) -> [String] {
    if panes.count == 1 { return panes[0].lines(feeds[0], width: width, height: height, focus: .only, console.palette) }
    let between = Self.separator.count
    let count = min(max((width + between) / (Self.leastWidth + between), 1), panes.count)
    let first = min(max(focus - count + 1, 0), panes.count - count)
    let room = width - between * (count - 1)
    let columns = (first..<first + count).map { place in
      let width = room / count + (place - first < room % count ? 1 : 0)
      let here: LiveFocus =
        place != focus || !hasKeys ? .other : count < panes.count ? .one(place + 1, of: panes.count) : .here
      return (width, panes[place].lines(feeds[place], width: width, height: height, focus: here, console.palette))
    }
    return (0..<(columns.map(\.1.count).max() ?? 0)).map { row in
      columns.map { width, lines in row < lines.count ? lines[row] : String(repeating: " ", count: width) }
        .joined(separator: console.palette.paint(Self.separator, .dim))
    }
  }

  func leave(_ last: [WatchState]) {
    session.leave()
    guard !last.isEmpty else { return }
    let rows = last.map { ($0.mirror?.count ?? 0) + ($0.mirror?.sections.count ?? 0) + 1 }.max() ?? 0
    let (width, height) = session.size
    let lines = lists(last, width: width, height: min(rows, max(height - 1, 2)), hasKeys: false)
    for line in lines.dropFirst(panes.count == 1 ? 1 : 0) {
      console.print(String(line.reversed().drop { $0 == " " }.reversed()))
    }
  }
}

extension LiveDisplay {
  func takeInput(_ feeds: [WatchState], now: UInt64) throws(Failure) -> [WatchInput] {
    var inputs: [WatchInput] = []
    for event in try session.events() {
      isDirty = true
      drawnAt = 0
      switch event {
      case .redraw: continue
      case .end(let signal): inputs.append(.signal(signal))
      case .key(let key): if let input = take(key, feeds) { inputs.append(input) }
      }
    }
    return inputs
  }

  private func take(_ key: Key, _ feeds: [WatchState]) -> WatchInput? {
    hasNoMatch = false
    switch view {
    case .rows: return takeInLists(key, feeds)
    case .text(var page):
      let (width, height) = session.size
      view = page.take(key, width: width, height: height) ? .text(page) : .rows
    case .search(let text): takeInSearch(key, text, feeds)
    }
    return nil
  }

  private func search(_ mirror: Mirror, forward: Bool) {
    hasNoMatch = !panes[focus].list.search(sought, in: mirror, forward: forward)
  }

  private func takeInSearch(_ key: Key, _ text: String, _ feeds: [WatchState]) {
    switch key {
    case .enter:
      (view, sought) = (.rows, text)
      if let mirror = panes[focus].shown(feeds[focus]) { search(mirror, forward: true) }
    case .escape: view = .rows
    case .backspace: view = text.isEmpty ? .rows : .search(String(text.dropLast()))
    case .character(let character): view = .search(text + String(character))
    default: return
    }
  }

  private func takeInLists(_ key: Key, _ feeds: [WatchState]) -> WatchInput? {
    switch key {
    case .character("q"): return .quit
    case .character("?"): view = .text(TextPage(Self.help, hanging: 19))
    case .character("/"): view = .search("")
    case .character(" "):
      isPaused.toggle()
      for place in panes.indices { panes[place].pause(isPaused, feeds[place]) }
    case .tab: moveSection(by: 1, feeds)
    case .backTab: moveSection(by: -1, feeds)
    case .right: focus = (focus + 1) % panes.count
    case .left: focus = (focus + panes.count - 1) % panes.count
    case .escape: for place in panes.indices { panes[place].list.follow() }
    default:
      if let mirror = panes[focus].shown(feeds[focus]) { return takeInList(key, mirror) }
    }
    return nil
  }

  private func takeInList(_ key: Key, _ mirror: Mirror) -> WatchInput? {
    let page = panes[focus].list.page
    switch key {
    case .down, .character("j"): panes[focus].list.move(by: 1, in: mirror)
    case .up, .character("k"): panes[focus].list.move(by: -1, in: mirror)
    case .pageDown: panes[focus].list.move(by: page, in: mirror)
    case .pageUp: panes[focus].list.move(by: -page, in: mirror)
    case .home, .character("g"): panes[focus].list.move(by: -mirror.count - 1, in: mirror)
    case .end, .character("G"): panes[focus].list.move(by: mirror.count + 1, in: mirror)
    case .character("n"): search(mirror, forward: true)
    case .character("N"): search(mirror, forward: false)
    case .character("s"):
      guard !isPaused, let path = panes[focus].list.cursor else { return nil }
      return .select(
        feed: focus, section: Int(path.section), row: Int(path.row), isOn: !mirror.selected.contains(path))
    case .enter:
      guard let path = panes[focus].list.cursor, let row = mirror[path] else { return nil }
      let title = "\(mirror.sections[Int(path.section)].name) row \(grouped(Int(path.row)))"
      view = .text(TextPage([title, ""] + Self.text(of: row)))
    default: break
    }
    return nil
  }

  /// Moves the cursor to the next section with rows, in this feed or the next one. Wraps around.
  private func moveSection(by step: Int, _ feeds: [WatchState]) {
    if let mirror = panes[focus].shown(feeds[focus]), panes[focus].list.moveSection(by: step, in: mirror) { return }
    focus = (focus + step + panes.count) % panes.count
    if let mirror = panes[focus].shown(feeds[focus]) { panes[focus].list.moveSection(toFirst: step > 0, in: mirror) }
  }

  private static func text(of row: FeedClient.Row) -> [String] {
    let text = row.element.readJSON { PrettyPrinter(palette: Palette(isOn: false)).text(of: $0) } ?? ""
    return text.split(separator: "\n").map(String.init)
  }

  private static let help = [
    "Keys", "", "  j k  ↓ ↑         next, previous row", "  PgUp PgDn        page up, page down",
    "  g G  Home End    first, last row", "  Tab  Shift-Tab   next, previous section or feed",
    "  ← →              previous, next feed", "  /  n  N          search, next, previous match",
    "  Enter            show the element", "  s                select or deselect the row", "  Space            pause",
    "  Esc              follow changes again", "  q                end", "",
    "+ added  ~ updated  > moved  ● selected", "", "Any other key returns to the list.",
  ]
}

/// The visible sections, and the number of visible rows of each.
///
/// If there is room for a heading and a row of every section, all sections are visible: short ones are complete, and
/// long ones share the rest equally. Otherwise as many sections are visible as have room for a few rows, around the
/// section with the focus.
struct LiveLayout: Equatable {
  /// The index of the first visible section.
  private(set) var first = 0
  /// The number of visible rows of each visible section.
  private(set) var rooms: [Int] = []
  /// The number of sections that do not fit.
  private(set) var hiddenSections = 0

  /// The visible sections.
  var shown: Range<Int> { first..<first + rooms.count }

  /// - Parameters:
  ///   - first: the first visible section of the last drawing.
  ///   - focus: a section that must be visible.
  init(counts: [Int], height: Int, first previous: Int = 0, focus: Int? = nil) {
    var left = height
    let needed = counts.reduce(0) { $0 + min($1, 1) + 1 }
    if needed <= height {
      rooms = [Int](repeating: 0, count: counts.count)
    } else {
      // One line shows the number of hidden sections.
      left = max(height - 1, 0)
      rooms = [Int](repeating: 0, count: min(left == 0 ? 0 : max(left / 3, 1), counts.count))
      hiddenSections = counts.count - rooms.count
      if hiddenSections == 0 { left = height }
      first = previous
      if let focus { first = max(min(first, focus), focus - rooms.count + 1) }
      first = max(0, min(first, hiddenSections))
    }
    left -= rooms.count
    var open = shown.sorted { counts[$0] < counts[$1] }[...]
    // Shortest section first: the rows that it does not need are for longer ones.
    while let section = open.first {
      rooms[section - first] = min(counts[section], left / open.count)
      left -= rooms[section - first]
      open = open.dropFirst()
    }
    // Distributes the remainder of the division.
    for section in shown where left > 0 && rooms[section - first] < counts[section] {
      rooms[section - first] += 1
      left -= 1
    }
  }
}
