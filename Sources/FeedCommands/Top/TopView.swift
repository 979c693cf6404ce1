import FeedClient
import FeedJSON

/// The state of the daemon at one time: the results of `stats` and `clients`.
struct TopSample: Equatable {
  /// One connection.
  struct Client: Equatable {
    var name: String
    var uid: Int
    var pid: Int
    var queued: Int
    var held: Int
    var lag: Int
    var resets: Int
    var requests: Int
    var watches: Int
  }

  /// The time in nanoseconds of a monotonic clock.
  var time: UInt64
  /// The numeric members of `stats`.
  var numbers: [String: Int] = [:]
  var clients: [Client] = []

  /// Parses the result of `stats`.
  init(time: UInt64, stats: JSONView) {
    self.time = time
    for member in stats.members { if let value = member.value.int { numbers[member.key.string ?? ""] = value } }
  }

  /// Parses the result of `clients`.
  mutating func take(clients result: JSONView) {
    guard let list = result.member("clients") else { return }
    clients = list.elements.map { row in
      func number(_ name: StaticString) -> Int { row.member(name)?.int ?? 0 }
      return Client(
        name: row.member("name")?.string ?? "", uid: number("uid"), pid: number("pid"), queued: number("queued"),
        held: number("held"), lag: number("lag"), resets: number("resets"), requests: number("requests"),
        watches: row.member("watches")?.count ?? 0)
    }
  }
}

/// The screen of `top`: rates with small graphs, gauges, and connections. Pure: converts samples and keys to lines.
struct TopView {
  /// A column of the table of connections, by which it can be sorted.
  private enum Column: String, CaseIterable {
    case client = "CLIENT"
    case uid = "UID"
    case pid = "PID"
    case rate = "REQ/S"
    case queued = "QUEUED"
    case held = "HELD"
    case lag = "LAG"
    case resets = "RESETS"
    case watches = "WATCHES"
  }

  private static let rates: [(title: String, member: String, isBytes: Bool)] = [
    ("requests", "requests", false), ("commits", "commits", false), ("deltas", "deltas", false),
    ("resets", "resets", false), ("received", "bytesIn", true), ("sent", "bytesOut", true),
  ]

  private static let gauges: [(title: String, member: String, isBytes: Bool)] = [
    ("elements", "elements", false), ("element bytes", "elementBytes", true), ("history", "historyBytes", true),
    ("log", "logBytes", true), ("memory", "memoryBytes", true), ("queued", "queuedBytes", true),
    ("held", "heldBytes", true), ("feeds", "feeds", false), ("watches", "watches", false),
  ]

  /// The samples of the graphs, oldest first.
  private var samples: [TopSample] = []
  private var sort = Column.rate
  private var isReversed = false
  private var filter = ""
  private var isTyping = false
  private var isPaused = false
  private var showsHelp = false
  private let palette: Palette

  init(palette: Palette) { self.palette = palette }

  /// Adds a sample, unless the view is paused.
  mutating func add(_ sample: TopSample) {
    if isPaused { return }
    samples.append(sample)
    if samples.count > 61 { samples.removeFirst(samples.count - 61) }
  }

  /// Handles a key. Returns whether to quit.
  mutating func take(_ key: Key) -> Bool {
    if isTyping {
      switch key {
      case .enter: isTyping = false
      case .escape: (isTyping, filter) = (false, "")
      case .backspace: _ = filter.popLast()
      case .character(let character): filter.append(character)
      default: break
      }
      return false
    }
    if showsHelp {
      showsHelp = false
      return key == .character("q")
    }
    switch key {
    case .character("q"): return true
    case .character("s"), .right, .tab: move(1)
    case .character("S"), .left, .backTab: move(-1)
    case .character("r"): isReversed.toggle()
    case .character("/"): (isTyping, filter) = (true, "")
    case .escape: filter = ""
    case .character(" "): isPaused.toggle()
    case .character("?"): showsHelp = true
    default: break
    }
    return false
  }

  private mutating func move(_ step: Int) {
    let all = Column.allCases
    let place = all.firstIndex(of: sort) ?? 0
    sort = all[(place + step + all.count) % all.count]
  }

  /// Returns the lines for a screen of this size.
  func lines(width: Int, height: Int) -> [String] {
    if showsHelp { return Array(Self.help.map { LinePainter.cut($0, to: width) }.prefix(height)) }
    guard let last = samples.last else { return [] }
    var lines = [title(last, width)]
    lines += rateLines(width)
    lines += gaugeLines(last, width)
    lines.append("")
    lines.append(header(width))
    for client in clients(last).prefix(max(height - lines.count, 0)) { lines.append(row(client, last, width)) }
    return Array(lines.prefix(height))
  }

  private func title(_ sample: TopSample, _ width: Int) -> String {
    var line = LinePainter(width: width, palette: palette)
    line.add("feedd", .bold)
    if isPaused { line.addWhole("  paused", .updated) }
    if isTyping || !filter.isEmpty { line.addWhole("  /\(filter)\(isTyping ? "█" : "")", .updated) }
    line.addWhole("  up \(Self.time(sample.numbers["uptime"] ?? 0))")
    line.addWhole("  revision \(Grouped.text(sample.numbers["revision"] ?? 0))")
    line.addWhole("  \(Grouped.text(sample.clients.count, "client"))")
    line.addWhole("  ? help", .dim)
    return line.text
  }

  private func rateLines(_ width: Int) -> [String] {
    Self.rates.compactMap { rate in
      guard samples.last?.numbers[rate.member] != nil else { return nil }
      let values = series(rate.member)
      var line = LinePainter(width: width, palette: palette)
      line.add(rate.title, .dim)
      let now = values.last ?? 0
      let text = (rate.isBytes ? Self.bytes(now) : Grouped.text(now)) + "/s"
      line.pad(to: max(22 - text.count, 10))
      line.add(text, .number)
      line.pad(to: 24)
      line.add(Self.graph(Array(values.suffix(max(width - 26, 0)))), .added)
      return line.text
    }
  }

  private func gaugeLines(_ sample: TopSample, _ width: Int) -> [String] {
    var lines: [String] = []
    var line = LinePainter(width: width, palette: palette)
    for gauge in Self.gauges {
      guard let value = sample.numbers[gauge.member] else { continue }
      let text = gauge.isBytes ? Self.bytes(value) : Grouped.text(value)
      if line.columns > 0, line.columns + gauge.title.count + text.count + 4 > width {
        lines.append(line.text)
        line = LinePainter(width: width, palette: palette)
      }
      if line.columns > 0 { line.add("  ") }
      line.add("\(gauge.title) ", .dim)
      line.add(text, .number)
    }
    return lines + [line.text]
  }

  /// The rates per second of a counter between the samples.
  private func series(_ member: String) -> [Int] {
    zip(samples, samples.dropFirst()).map { before, after in
      Self.rate(before.numbers[member] ?? 0, after.numbers[member] ?? 0, after.time &- before.time)
    }
  }

  /// A counter that decreased was reset.
  private static func rate(_ before: Int, _ after: Int, _ nanoseconds: UInt64) -> Int {
    guard nanoseconds > 0, after > before else { return 0 }
    return Int((Double(after - before) * 1e9 / Double(nanoseconds)).rounded())
  }

  private func rate(of client: TopSample.Client, _ sample: TopSample) -> Int {
    guard samples.count > 1 else { return 0 }
    let earlier = samples[samples.count - 2]
    let before = earlier.clients.first { $0.pid == client.pid && $0.name == client.name }
    return Self.rate(before?.requests ?? 0, client.requests, sample.time &- earlier.time)
  }

  private func clients(_ sample: TopSample) -> [TopSample.Client] {
    let wanted = filter.lowercased()
    let shown = sample.clients.filter { client in
      wanted.isEmpty || "\(client.name) \(client.uid) \(client.pid)".lowercased().contains(wanted)
    }
    let sorted: [TopSample.Client]
    if sort == .client {
      sorted = shown.sorted { ($0.name, $0.pid) < ($1.name, $1.pid) }
    } else {
      sorted = shown.sorted { (number(sort, $1, sample), $0.pid) < (number(sort, $0, sample), $1.pid) }
    }
    return isReversed ? sorted.reversed() : sorted
  }

  private func number(_ column: Column, _ client: TopSample.Client, _ sample: TopSample) -> Int {
    switch column {
    case .client: 0
    case .uid: client.uid
    case .pid: client.pid
    case .rate: rate(of: client, sample)
    case .queued: client.queued
    case .held: client.held
    case .lag: client.lag
    case .resets: client.resets
    case .watches: client.watches
    }
  }

  /// Returns the columns that fit beside the name, and the width of the name.
  private func plan(_ width: Int) -> (name: Int, columns: [Column]) {
    let fitting = max((width - 13) / 9, 0)
    let order: [Column] = [.rate, .queued, .lag, .held, .watches, .pid, .uid, .resets]
    let kept = Set(order.prefix(fitting))
    return (max(width - 1 - kept.count * 9, 8), Column.allCases.filter { kept.contains($0) })
  }

  private func header(_ width: Int) -> String {
    let (name, columns) = plan(width)
    var line = LinePainter(width: width, palette: palette)
    func add(_ column: Column, _ text: String) { line.add(text, column == sort ? .title : .bold) }
    add(.client, Column.client.rawValue)
    line.pad(to: name)
    for column in columns {
      line.add(String(repeating: " ", count: max(9 - column.rawValue.count, 1)))
      add(column, column.rawValue)
    }
    return line.text
  }

  private func row(_ client: TopSample.Client, _ sample: TopSample, _ width: Int) -> String {
    let (name, columns) = plan(width)
    var line = LinePainter(width: width, palette: palette)
    line.add(LinePainter.cut(LinePainter.safe(client.name), to: name - 1))
    line.pad(to: name)
    for column in columns {
      let value = number(column, client, sample)
      let text =
        switch column {
        case .queued, .held: Self.bytes(value)
        case .uid, .pid: "\(value)"
        default: Grouped.text(value)
        }
      line.add(String(repeating: " ", count: max(9 - text.count, 1)) + text, value > 0 ? .number : .dim)
    }
    return line.text
  }

  /// Returns a bar for each value, relative to the largest.
  static func graph(_ values: [Int]) -> String {
    let bars = Array("▁▂▃▄▅▆▇█")
    let top = max(values.max() ?? 0, 1)
    return String(values.map { bars[min($0 * 8 / top, 7)] })
  }

  /// Formats bytes with a unit: `512 B`, `1.5 KB`, `32 MB`.
  static func bytes(_ count: Int) -> String {
    if count < 1000 { return "\(count) B" }
    var (value, place) = (Double(count), 0)
    while value >= 999.5, place < 4 { (value, place) = (value / 1000, place + 1) }
    let unit = ["B", "KB", "MB", "GB", "TB"][place]
    let tenths = Int((value * 10).rounded())
    return tenths < 100 ? "\(tenths / 10).\(tenths % 10) \(unit)" : "\(Int(value.rounded())) \(unit)"
  }

  /// Formats seconds as the two largest units.
  static func time(_ seconds: Int) -> String {
    if seconds < 60 { return "\(seconds) s" }
    if seconds < 3600 { return "\(seconds / 60) min \(seconds % 60) s" }
    if seconds < 86_400 { return "\(seconds / 3600) h \(seconds / 60 % 60) min" }
    return "\(seconds / 86_400) d \(seconds / 3600 % 24) h"
  }

  private static let help = [
    "Keys", "", "  s S  Tab arrows  sort by the next, previous column", "  r                reverse the order",
    "  /                filter by name, user or process; Esc ends", "  Space            pause",
    "  q                end",
    "", "Rates are those of the last interval; graphs show the last minute at 1 s.", "", "Any other key goes back.",
  ]
}
