import FeedClient
import FeedJSON

/// A display that prints lines and handles no input. Flushes all output before the program waits.
class LineDisplay: WatchDisplay {
  let console: Console

  init(_ console: Console) { self.console = console }

  var needsMirror: Bool { false }
  var countsStates: Bool { true }
  var rowNeeds: RowNeeds { .none }
  var needsIDs: Bool { false }
  final var deadline: UInt64? { nil }
  final var descriptors: [Int32] { [] }

  func take(
    _ notification: Notification, _ delta: Delta?, _ news: RowNews?, _ mirror: Mirror?, feed: Int, now: UInt64
  ) -> Bool { true }

  final func update(_ feeds: [WatchState], now: UInt64) throws(Failure) { try console.flush() }
  final func takeInput(_ feeds: [WatchState], now: UInt64) throws(Failure) -> [WatchInput] { [] }
  final func leave(_ last: [WatchState]) {}
}

/// `watch` as text: prints each row that a notification shows, adds, updates, moves or deletes on a line with a sign.
final class ChangeLines: LineDisplay {
  private let settings: WatchSettings
  /// The names of the feeds, printed before each line; nil if there is only one feed.
  private let names: [String]?
  private var name = ""

  init(_ console: Console, _ settings: WatchSettings) {
    self.settings = settings
    names = settings.feeds.count > 1 ? settings.feeds : nil
    super.init(console)
  }

  override var rowNeeds: RowNeeds { .all }
  override var needsIDs: Bool { true }

  override func take(
    _ notification: Notification, _ delta: Delta?, _ news: RowNews?, _ mirror: Mirror?, feed: Int, now: UInt64
  ) -> Bool {
    guard let news else { return false }
    if let names { name = "\(names[feed]) " }
    if let reset = news.reset { announce(reset) }
    var count = 0
    for row in settings.shown(news.rows) {
      show(row, news)
      count += 1
    }
    // A snapshot without rows counts as shown, and so does a delta of changes that cancel out.
    if count > 0 || news.reset != nil { return true }
    return settings.filter.words == nil && settings.filter.section == nil
      && (notification.kind == .snapshot ? settings.initial : settings.filter.isOpen)
  }

  private func announce(_ reset: RowNews.Reset) {
    var line = console.line()
    line.add(name, .bold)
    line.add("! reset: \(reset.reason); ", .title)
    line.add(
      reset.isCompared
        ? "signs compare with the rows shown before" : "the rows from before are not known, so ? marks each row", .title
    )
    console.print(line.text)
  }

  private func show(_ row: RowChange, _ news: RowNews) {
    var line = console.line()
    line.add(name, .bold)
    let (sign, role) = Self.sign(of: row.kind)
    line.add(sign, role)
    let isMove = row.kind == .moved || row.kind == .movedAndUpdated
    let places = [isMove || row.kind == .deleted ? row.before : nil, row.after].compactMap { $0?.path }
    line.add(" " + places.map { "\($0)" }.joined(separator: "->"), .dim)
    if let element = row.element {
      line.add(" ")
      settings.templates.add(element, type: row.type, to: &line)
    } else if let id = row.id {
      line.add(" ")
      // Of the element of a deleted row only the identity is known.
      settings.templates.add(news.identities.element(withID: id, in: row.before?.section), type: nil, to: &line)
    }
    console.print(line.text)
  }

  private static func sign(of kind: RowChange.Kind) -> (String, Palette.Role) {
    switch kind {
    case .initial, .unchanged: (" ", .plain)
    case .unknown: ("?", .added)
    case .added: ("+", .added)
    case .updated: ("~", .updated)
    case .moved: (">", .moved)
    case .movedAndUpdated: (">~", .moved)
    case .deleted: ("-", .deleted)
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

  override func take(
    _ notification: Notification, _ delta: Delta?, _ news: RowNews?, _ mirror: Mirror?, feed: Int, now: UInt64
  ) -> Bool {
    guard let mirror, mirror.progress.isLive, notification.kind == .snapshot || notification.kind == .delta else {
      return true
    }
    switch output {
    case .changes: break
    case .counts:
      let sections = mirror.sections.map { SectionSummary(name: $0.name, key: $0.key, count: $0.rows.count) }
      show(counts: sections, revision: mirror.progress.revision, of: mirror.feed)
    case .rows(let template, let count, let separator):
      texts[feed] = Self.texts(mirror, template, count ?? 1)
      show(separator, isOneLine: count == nil)
    }
    return true
  }

  /// Prints a line for each row; with a separator, one line with the rows of all feeds. Without `--rows`, a feed without rows
  /// has an empty line. Prints nothing before the snapshot of every feed is complete.
  private func show(_ separator: String?, isOneLine: Bool) {
    let known = texts.compactMap(\.self)
    guard known.count == texts.count else { return }
    if let separator { return console.print(known.joined().joined(separator: separator)) }
    for texts in known {
      for text in texts.isEmpty && isOneLine ? [""] : texts { console.print(text) }
    }
  }

  private static func texts(_ mirror: Mirror, _ template: Template, _ count: Int) -> [String] {
    var texts: [String] = []
    for section in mirror.sections {
      for row in section.rows.prefix(count - texts.count) {
        var line = LinePainter(width: LinePainter.unlimited, palette: Palette(isOn: false))
        _ = row.element.readJSON { template.add($0, to: &line) }
        texts.append(line.text)
      }
      if texts.count >= count { break }
    }
    return texts
  }

  /// Prints the number of rows of each section.
  func show(counts sections: [SectionSummary], revision: UInt64, of feed: String) {
    if console.isJSON {
      var object = ParameterWriter(feed: feed)
      object.add("revision", json: "\(revision)")
      object.add("sections", sections)
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
