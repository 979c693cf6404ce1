import FeedChange
import FeedClient
import FeedSystem

/// `watch` on a terminal: the feed as a list that is redrawn in place.
final class LiveDisplay: WatchDisplay {
  /// The screen changes at most so often: 30 times a second.
  private static let interval: UInt64 = 33_000_000
  private let console: Console
  private let environment: Environment
  private var list: LiveList
  private var screen = Screen()
  private var isEntered = false
  private var isDirty = true
  private var drawnAt: UInt64 = 0
  private var lastStatus: WatchStatus?

  init(_ console: Console, _ environment: Environment, _ templates: Templates) {
    self.console = console
    self.environment = environment
    list = LiveList(templates: templates)
  }

  var needsMirror: Bool { true }

  var deadline: UInt64? {
    isDirty ? drawnAt &+ Self.interval : list.deadline
  }

  func take(_ notification: Notification, _ delta: Delta?, _ mirror: Mirror?, now: UInt64) {
    isDirty = true
    switch notification.kind {
    case .snapshot: list.reset()
    case .delta:
      guard let mirror, let delta else { return }
      list.note(delta.change, revision: delta.revision, sections: mirror.sections.count, now: now)
    case .bookmark, .selection, .bye, .other: return
    }
  }

  /// The size of the terminal may have changed, or the screen was the shell's for a while.
  func refresh() {
    screen.invalidate()
    isDirty = true
    drawnAt = 0
  }

  func update(_ mirror: Mirror?, _ status: WatchStatus, now: UInt64) throws(Failure) {
    if let end = list.deadline, now >= end {
      list.expire(now: now)
      isDirty = true
    }
    if status != lastStatus { isDirty = true }
    guard isDirty, now >= drawnAt &+ Self.interval else { return }
    (isDirty, drawnAt, lastStatus) = (false, now, status)
    let terminal = Terminal(descriptor: StandardStreams.output, environment: environment)
    let (width, height) = (terminal.columns, max(terminal.rows ?? 24, 2))
    var lines = [heading(mirror, status, width: width)]
    if let mirror {
      lines += list.lines(mirror, width: width, height: height - 1, palette: console.palette)
    }
    console.printRaw((isEntered ? "" : Screen.enter) + screen.draw(lines))
    isEntered = true
    try console.flush()
  }

  private func heading(_ mirror: Mirror?, _ status: WatchStatus, width: Int) -> String {
    var line = LinePainter(width: width, palette: console.palette)
    line.add(status.feed, .bold)
    if let mirror, mirror.progress.isLive {
      line.add("  \(Grouped.text(mirror.count)) rows  revision \(mirror.progress.revision)", .dim)
    }
    if let complaint = status.complaint { line.add("  \(complaint)", .error) }
    if let revision = status.verifiedRevision { line.add("  verified at \(revision)", .added) }
    line.add("  control-C ends", .dim)
    return line.text
  }

  func leave() {
    guard isEntered else { return }
    isEntered = false
    screen.invalidate()
    console.printRaw(Screen.leave)
    try? console.flush()
  }
}
