import FeedChange
import FeedClient
import FeedSystem
import Glibc

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

/// A terminal's screen, redrawn in place: only the lines that differ from those it shows are written. Pure: it makes
/// the bytes.
struct Screen {
  /// Another screen than the shell's, without a cursor and without wrapping.
  static let enter = "\u{1B}[?1049h\u{1B}[?25l\u{1B}[?7l"
  /// Back to the shell's screen.
  static let leave = "\u{1B}[?7h\u{1B}[?25h\u{1B}[?1049l"

  private var shown: [String]?

  /// Everything must be drawn anew: the size has changed, or the screen was somebody else's.
  mutating func invalidate() { shown = nil }

  /// What makes the terminal show `lines`; empty when it does already.
  mutating func draw(_ lines: [String]) -> String {
    var text = shown == nil ? "\u{1B}[2J" : ""
    let old = shown ?? []
    for row in 0..<max(lines.count, old.count) {
      let line = row < lines.count ? lines[row] : ""
      if row < old.count ? old[row] == line : line.isEmpty { continue }
      text += "\u{1B}[\(row + 1);1H\(line)\u{1B}[K"
    }
    shown = lines
    return text
  }
}

/// What a person at a terminal may do to a program that owns the screen: end it, stop it, resize it. As events that are
/// polled, so that the screen is always given back as a shell wants it.
final class TerminalSignals {
  private let queue: SignalQueue
  private let display: LiveDisplay

  /// Takes over the signals of a terminal for `display`.
  init(_ display: LiveDisplay) throws(Failure) {
    self.display = display
    do throws(SystemError) {
      queue = try SignalQueue([SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH])
    } catch {
      throw .system(error)
    }
  }

  /// To be polled for reading.
  var descriptor: Int32 { queue.descriptor }

  /// Does what the signals ask for.
  /// - Returns: whether the program shall end.
  func handle() throws(Failure) -> Bool {
    do throws(SystemError) {
      while let arrival = try queue.next() {
        switch arrival.signal {
        case SIGWINCH: display.refresh()
        case SIGTSTP: stop()
        default: return true
        }
      }
    } catch {
      throw .system(error)
    }
    return false
  }

  /// Stops as the terminal asked, with the shell's screen in sight; comes back when the shell says so.
  private func stop() {
    display.leave()
    kill(getpid(), SIGSTOP)
    display.refresh()
  }
}
