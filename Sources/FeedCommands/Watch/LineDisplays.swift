import FeedChange
import FeedClient
import FeedJSON

/// A display that prints lines and handles no input.
class LineDisplay: WatchDisplay {
  let console: Console

  init(_ console: Console) { self.console = console }

  var needsMirror: Bool { false }
  var countsStates: Bool { false }
  final var deadline: UInt64? { nil }
  final var descriptors: [Int32] { [] }

  func take(_ notification: Notification, _ delta: Delta?, _ mirror: Mirror?, feed: Int, now: UInt64) {
    console.print(notification.whole)
  }

  final func update(_ feeds: [WatchState], now: UInt64) throws(Failure) { try console.flush() }
  final func takeInput(_ feeds: [WatchState], now: UInt64) throws(Failure) -> [WatchInput] { [] }
  final func leave(_ last: [WatchState]) {}
}

/// `watch` for programs: prints the daemon's notifications, one on each line. Flushes all output before the program
/// waits.
typealias NotificationLines = LineDisplay

/// `watch` as text: prints each added, updated or deleted row on a line with a sign.
final class ChangeLines: LineDisplay {
  private let templates: Templates
  /// The names of the feeds, printed before each line; nil if there is only one feed.
  private let names: [String]?
  private var name = ""

  init(_ console: Console, _ templates: Templates, feeds: [String]) {
    self.templates = templates
    names = feeds.count > 1 ? feeds : nil
    super.init(console)
  }

  override var countsStates: Bool { true }

  override func take(_ notification: Notification, _ delta: Delta?, _ mirror: Mirror?, feed: Int, now: UInt64) {
    if let names { name = "\(names[feed]) " }
    switch notification.kind {
    case .snapshot: show(snapshot: notification.params)
    case .delta: show(delta: notification.params)
    case .bookmark, .selection, .bye, .other: return
    }
  }

  private func line(_ sign: String, _ role: Palette.Role, _ path: IndexPath, _ element: JSONView?, _ type: String?) {
    var line = console.line()
    line.add(name, .bold)
    line.add(sign, role)
    line.add(" \(path)", .dim)
    if let element {
      line.add(" ")
      templates.add(element, type: type, to: &line)
    }
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

/// A display that prints the state of the feeds after every change: the first rows, or the numbers of rows.
final class StateLines: LineDisplay {
  private let output: WatchSettings.Output
  /// The texts of the first rows of each feed; nil before its snapshot is complete.
  private var texts: [[String]?]

  init(_ console: Console, _ output: WatchSettings.Output, feeds: Int) {
    self.output = output
    texts = Array(repeating: nil, count: feeds)
    super.init(console)
  }

  override var needsMirror: Bool { true }
  override var countsStates: Bool { true }

  override func take(_ notification: Notification, _ delta: Delta?, _ mirror: Mirror?, feed: Int, now: UInt64) {
    guard let mirror, mirror.progress.isLive, notification.kind == .snapshot || notification.kind == .delta else {
      return
    }
    switch output {
    case .changes: return
    case .counts:
      let sections = mirror.sections.map { SectionSummary(name: $0.name, count: $0.rows.count) }
      show(counts: sections, revision: mirror.progress.revision, of: mirror.feed)
    case .rows(let template, let count, let separator):
      texts[feed] = Self.texts(mirror, template, count)
      show(count, separator)
    }
  }

  /// Prints `count` lines for each feed, empty ones for missing rows; with a separator, one line with the rows of all
  /// feeds. Prints nothing before the snapshot of every feed is complete.
  private func show(_ count: Int, _ separator: String?) {
    let known = texts.compactMap(\.self)
    guard known.count == texts.count else { return }
    if let separator { return console.print(known.joined().joined(separator: separator)) }
    for texts in known {
      for place in 0..<count { console.print(place < texts.count ? texts[place] : "") }
    }
  }

  /// The texts of the first `count` rows.
  private static func texts(_ mirror: Mirror, _ template: Template, _ count: Int) -> [String] {
    var texts: [String] = []
    var scanner = JSONScanner(maxDepth: 10_100)
    for section in mirror.sections {
      for row in section.rows.prefix(count - texts.count) {
        var line = LinePainter(width: LinePainter.unlimited, palette: Palette(isOn: false))
        row.element.withUnsafeBytes { bytes in
          if let view = try? scanner.scan(bytes) { template.add(view, to: &line) }
        }
        texts.append(line.text)
      }
      if texts.count >= count { break }
    }
    return texts
  }

  /// Prints the number of rows of each section.
  func show(counts sections: [SectionSummary], revision: UInt64, of feed: String) {
    if console.wantsJSON {
      var object = ParameterWriter()
      object.add("feed", feed)
      object.add("revision", json: "\(revision)")
      object.add("sections", json: sections.map { "{\"name\":\(Operands.quoted($0.name)),\"count\":\($0.count)}" })
      return console.print(object.finish())
    }
    var line = console.line()
    for (place, section) in sections.enumerated() {
      if place > 0 { line.add("  ") }
      line.add(section.name, .key)
      line.add(" \(grouped(section.count))", .number)
    }
    console.print(line.text)
  }
}
