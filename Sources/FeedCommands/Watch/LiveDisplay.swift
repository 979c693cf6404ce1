import FeedChange
import FeedClient
import FeedJSON
import FeedSystem

/// `watch` on a terminal: shows the feed as a list that is redrawn in place and scrolled with keys.
final class LiveDisplay: WatchDisplay {
  /// The content of the screen.
  private enum View: Equatable {
    case rows
    /// Help, or an element: the lines, and the index of the first visible one.
    case text([String], top: Int)
    /// The list, while a search text is typed.
    case search(String)
  }

  /// The minimum nanoseconds between two drawings (30 a second).
  private static let interval: UInt64 = 33_000_000
  private let console: Console
  private let session: TerminalSession
  private var list: LiveList
  private var view = View.rows
  private var sought = ""
  /// The rows shown while the display is paused, and the number of changes since.
  private var paused: (mirror: Mirror, changes: Int)?
  private var isDirty = true
  private var drawnAt: UInt64 = 0
  private var lastStatus: WatchStatus?

  init(_ console: Console, _ environment: Environment, _ templates: Templates) throws(Failure) {
    self.console = console
    session = try TerminalSession(console, environment)
    list = LiveList(templates: templates)
  }

  var needsMirror: Bool { true }
  var descriptors: [Int32] { session.descriptors }
  var deadline: UInt64? { isDirty ? drawnAt &+ Self.interval : list.deadline }

  func take(_ notification: Notification, _ delta: Delta?, _ mirror: Mirror?, now: UInt64) {
    isDirty = true
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

  func update(_ mirror: Mirror?, _ status: WatchStatus, now: UInt64) throws(Failure) {
    if let end = list.deadline, now >= end {
      list.expire(now: now)
      isDirty = true
    }
    if status != lastStatus { isDirty = true }
    guard isDirty, now >= drawnAt &+ Self.interval else { return }
    (isDirty, drawnAt, lastStatus) = (false, now, status)
    let (width, height) = session.size
    try session.draw(lines(paused?.mirror ?? mirror, status, width: width, height: height))
  }

  private func lines(_ mirror: Mirror?, _ status: WatchStatus, width: Int, height: Int) -> [String] {
    if case .text(let text, let top) = view {
      return text[min(top, max(text.count - height, 0))...].prefix(height).map { Self.cut($0, width) }
    }
    var lines = [heading(mirror, status, width: width)]
    var room = height - 1
    if case .search = view { room -= 1 }
    if let mirror { lines += list.lines(mirror, width: width, height: room, palette: console.palette) }
    if case .search(let text) = view { lines.append(Self.cut("/\(text)█", width)) }
    return lines
  }

  private static func cut(_ text: String, _ width: Int) -> String {
    var line = LinePainter(width: width, palette: Palette(isOn: false))
    line.add(text)
    return line.text
  }

  private func heading(_ mirror: Mirror?, _ status: WatchStatus, width: Int) -> String {
    var line = LinePainter(width: width, palette: console.palette)
    line.add(status.feed, .bold)
    if let paused { line.addWhole("  paused, \(Grouped.text(paused.changes, "change"))", .updated) }
    if let complaint = status.complaint { line.add("  \(complaint)", .error) }
    if let mirror, mirror.progress.isLive {
      line.addWhole("  \(Grouped.text(mirror.count, "row"))", .dim)
      line.addWhole("  revision \(Grouped.text(Int(clamping: mirror.progress.revision)))", .dim)
    }
    if let revision = status.verifiedRevision {
      line.addWhole("  verified at \(Grouped.text(Int(clamping: revision)))", .added)
    }
    line.addWhole("  ? help", .dim)
    return line.text
  }

  func leave(_ last: Mirror?) {
    session.leave()
    guard let last else { return }
    let rows = last.count + last.sections.count
    let (width, height) = session.size
    for line in list.lines(last, width: width, height: min(rows, max(height - 2, 1)), palette: console.palette) {
      console.print(line)
    }
  }
}

extension LiveDisplay {
  func takeInput(_ mirror: Mirror?, now: UInt64) throws(Failure) -> [WatchInput] {
    var inputs: [WatchInput] = []
    for event in try session.events() {
      isDirty = true
      drawnAt = 0
      switch event {
      case .redraw: continue
      case .end(let signal): inputs.append(.signal(signal))
      case .key(let key): if let input = take(key, mirror) { inputs.append(input) }
      }
    }
    return inputs
  }

  private func take(_ key: Key, _ mirror: Mirror?) -> WatchInput? {
    switch view {
    case .rows: return takeInList(key, paused?.mirror ?? mirror, live: mirror)
    case .text(let lines, let top): takeInText(key, lines, top)
    case .search(let text): takeInSearch(key, text, paused?.mirror ?? mirror)
    }
    return nil
  }

  private func takeInText(_ key: Key, _ lines: [String], _ top: Int) {
    let page = max(session.size.height - 1, 1)
    var next = top
    switch key {
    case .down, .character("j"): next += 1
    case .up, .character("k"): next -= 1
    case .pageDown, .character(" "): next += page
    case .pageUp: next -= page
    case .home, .character("g"): next = 0
    case .end, .character("G"): next = lines.count
    default:
      view = .rows
      return
    }
    view = .text(lines, top: max(0, min(next, lines.count - session.size.height)))
  }

  private func takeInSearch(_ key: Key, _ text: String, _ mirror: Mirror?) {
    switch key {
    case .enter:
      (view, sought) = (.rows, text)
      if let mirror { list.search(sought, in: mirror, forward: true) }
    case .escape: view = .rows
    case .backspace: view = text.isEmpty ? .rows : .search(String(text.dropLast()))
    case .character(let character): view = .search(text + String(character))
    default: return
    }
  }

  private func takeInList(_ key: Key, _ mirror: Mirror?, live: Mirror?) -> WatchInput? {
    if key == .character("q") { return .quit }
    if key == .character("?") { view = .text(Self.help, top: 0) }
    if key == .character("/") { view = .search("") }
    guard let mirror else { return nil }
    switch key {
    case .down, .character("j"): list.move(by: 1, in: mirror)
    case .up, .character("k"): list.move(by: -1, in: mirror)
    case .pageDown: list.move(by: list.page, in: mirror)
    case .pageUp: list.move(by: -list.page, in: mirror)
    case .home, .character("g"): list.move(by: -mirror.count - 1, in: mirror)
    case .end, .character("G"): list.move(by: mirror.count + 1, in: mirror)
    case .tab: list.moveSection(by: 1, in: mirror)
    case .backTab: list.moveSection(by: -1, in: mirror)
    case .escape: list.follow()
    case .character("n"): list.search(sought, in: mirror, forward: true)
    case .character("N"): list.search(sought, in: mirror, forward: false)
    case .character(" "):
      paused = paused == nil ? live.map { ($0, 0) } : nil
      if paused == nil, let live { list.clamp(to: live) }
    case .character("s"):
      guard paused == nil, let path = list.cursor else { return nil }
      return .select(section: Int(path.section), row: Int(path.row), isOn: !mirror.selected.contains(path))
    case .enter:
      guard let path = list.cursor, let row = mirror[path] else { return nil }
      view = .text(["\(mirror.sections[Int(path.section)].name) row \(path.row)", ""] + Self.text(of: row), top: 0)
    default: break
    }
    return nil
  }

  /// Formats an element.
  private static func text(of row: FeedClient.Row) -> [String] {
    row.element.withUnsafeBytes { bytes in
      var scanner = JSONScanner(maxDepth: 10_100)
      guard let view = try? scanner.scan(bytes) else { return [] }
      return PrettyPrinter(palette: Palette(isOn: false)).text(of: view).split(separator: "\n").map(String.init)
    }
  }

  private static let help = [
    "Keys", "", "  j k  arrows      next, previous row", "  PgUp PgDn        page up, page down",
    "  g G  Home End    first, last row", "  Tab  Shift-Tab   next, previous section",
    "  /  n  N          search, next, previous match",
    "  Enter            show the element", "  s                select or deselect the row", "  Space            pause",
    "  Esc              follow changes again", "  q                end", "",
    "+ added  ~ updated  > moved  ● selected", "", "Any other key returns to the list.",
  ]
}
