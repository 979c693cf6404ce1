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
