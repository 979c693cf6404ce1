import FeedChange
import FeedClient
import FeedJSON
import FeedSystem

/// `watch` on a terminal that cannot be redrawn: each change as a line with a sign, as it comes.
final class ChangeLines: WatchDisplay {
  private let console: Console
  private let templates: Templates

  init(_ console: Console, _ templates: Templates) {
    self.console = console
    self.templates = templates
  }

  var needsMirror: Bool { false }
  var deadline: UInt64? { nil }

  func take(_ notification: Notification, _ delta: Delta?, _ mirror: Mirror?, now: UInt64) {
    switch notification.kind {
    case .snapshot: show(snapshot: notification.params)
    case .delta: show(delta: notification.params)
    case .bookmark, .selection, .bye, .other: return
    }
  }

  func update(_ mirror: Mirror?, _ status: WatchStatus, now: UInt64) throws(Failure) { try console.flush() }

  func leave() {}

  private func line(_ sign: String, _ role: Palette.Role, _ path: IndexPath, _ element: JSONView?, _ type: String?) {
    var line = LinePainter(width: console.terminal.columns, palette: console.palette)
    line.add(sign, role)
    line.add(" \(path) ", .dim)
    if let element { templates.add(element, type: type, to: &line) }
    console.print(line.text)
  }

  private func show(snapshot params: JSONView) {
    guard let at = params.member("at").flatMap(IndexPath.init), let elements = params.member("elements") else { return }
    let types = params.member("types")
    for (place, element) in elements.elements.enumerated() {
      let path = IndexPath(section: at.section, row: at.row &+ UInt32(truncatingIfNeeded: place))
      line(" ", .plain, path, element, types?.element(at: place)?.string)
    }
  }

  private func show(delta params: JSONView) {
    func paths(_ name: StaticString) -> [IndexPath] {
      params.member(name)?.elements.compactMap { IndexPath($0) } ?? []
    }
    for path in paths("deleted") { line("-", .deleted, path, nil, nil) }
    var elements = params.member("elements")?.elements
    var types = params.member("types")?.elements
    for (name, sign, role) in [("added", "+", Palette.Role.added), ("updated", "~", .updated)]
      as [(StaticString, String, Palette.Role)]
    {
      for path in paths(name) { line(sign, role, path, elements?.next(), types?.next()?.string) }
    }
  }
}

/// `watch` for programs: the daemon's notifications as they come, one a line. What came together is written together,
/// and everything is written before anything is waited for.
final class NotificationLines: WatchDisplay {
  /// More than this is written before the rest of what came is looked at.
  private static let enough = 256 << 10
  private let console: Console

  init(_ console: Console) { self.console = console }

  var needsMirror: Bool { false }
  var deadline: UInt64? { nil }

  func take(_ notification: Notification, _ delta: Delta?, _ mirror: Mirror?, now: UInt64) {
    console.print(notification.whole)
  }

  func update(_ mirror: Mirror?, _ status: WatchStatus, now: UInt64) throws(Failure) { try console.flush() }

  func leave() {}
}
