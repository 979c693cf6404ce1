import FeedJSON

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

  /// A number in the summary: its title and its member of `stats`.
  private typealias Quantity = (title: String, member: String, isBytes: Bool)

  /// The rates, most important first.
  private static let rates: [Quantity] = [
    ("requests", "requests", false), ("deltas", "deltas", false), ("commits", "commits", false),
    ("received", "bytesIn", true), ("sent", "bytesOut", true), ("errors", "errors", false), ("resets", "resets", false),
  ]

  private static let gauges: [Quantity] = [
    ("memory", "memoryBytes", true), ("queued", "queuedBytes", true), ("history", "historyBytes", true),
    ("log", "logBytes", true), ("elements", "elements", false), ("bytes", "elementBytes", true),
    ("watches", "watches", false), ("feeds", "feeds", false), ("held", "heldBytes", true),
  ]

  /// The samples of the graphs, oldest first.
  private var samples: [TopSample] = []
  private var sort = Column.rate
  private var isReversed = false
  private var filter = ""
  private var isTyping = false
  private var isPaused = false
  private var help = TextPage(Self.helpLines, hanging: 19)
  private var showsHelp = false
  private let palette: Palette

  init(palette: Palette) { self.palette = palette }

  /// Adds a sample, unless the view is paused.
  mutating func add(_ sample: TopSample) {
    if isPaused { return }
    var sample = sample
    if let before = samples.last {
      // A process may have several connections with one name.
      let requests = Dictionary(before.clients.map { ($0.connection, $0.requests) }) { first, _ in first }
      for place in sample.clients.indices {
        let client = sample.clients[place]
        sample.clients[place].rate = Self.rate(
          requests[client.connection] ?? 0, client.requests, sample.time &- before.time)
      }
    }
    samples.append(sample)
    if samples.count > 61 { samples.removeFirst(samples.count - 61) }
  }

  /// Handles a key. Returns whether to quit.
  mutating func take(_ key: Key, width: Int = 80, height: Int = 24) -> Bool {
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
      if help.take(key, width: width, height: height) { return false }
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

  /// Returns the lines for a screen of this size. If space is short, rates and gauges that are zero are omitted first,
  /// then the least important rates. A third of the screen is for the connections.
  func lines(width: Int, height: Int) -> [String] {
    if showsHelp { return help.lines(width: width, height: height) }
    guard let last = samples.last else { return [] }
    let clients = clients(last)
    let isTall = height >= 16
    let room = height - 2 - min(clients.count, max(height / 3, 1)) - (isTall ? 1 : 0)
    var lines = [title(last, width)] + summary(last, width, room: max(room, 0))
    if isTall { lines.append("") }
    let rows = clients.prefix(max(height - lines.count - 1, 0))
    lines += table(Array(rows), width)
    return Array(lines.prefix(height))
  }

  /// Returns the rates with their graphs, and the gauges, in at most `room` lines.
  private func summary(_ sample: TopSample, _ width: Int, room: Int) -> [String] {
    var rates = Self.rates.filter { sample.numbers[$0.member] != nil }
    var gauges = gaugeLines(sample, width, withZeros: true)
    while rates.count + gauges.count > room,
      let idle = rates.lastIndex(where: { series($0.member).allSatisfy { $0 == 0 } })
    {
      rates.remove(at: idle)
    }
    if rates.count + gauges.count > room { gauges = gaugeLines(sample, width, withZeros: false) }
    while rates.count + gauges.count > room, rates.count > 1 { rates.removeLast() }
    return Array((rates.map { rateLine($0, width) } + gauges).prefix(room))
  }

  private func title(_ sample: TopSample, _ width: Int) -> String {
    var line = LinePainter(width: width, palette: palette)
    line.add("feedd", .bold)
    if isPaused { line.addWhole("  paused", .updated) }
    if isTyping || !filter.isEmpty { line.addWhole("  /\(filter)\(isTyping ? "█" : "")", .updated) }
    line.addWhole("  up \(Self.time(sample.numbers["uptime"] ?? 0))")
    line.addWhole("  revision \(grouped(sample.numbers["revision"] ?? 0))")
    line.addWhole("  \(counted(sample.clients.count, "client"))")
    line.addWhole("  ? help", .dim)
    return line.text
  }

  private func rateLine(_ rate: Quantity, _ width: Int) -> String {
    let values = series(rate.member)
    var line = LinePainter(width: width, palette: palette)
    line.add(rate.title, .dim)
    let now = values.last ?? 0
    let text = (rate.isBytes ? Self.bytes(now) : grouped(now)) + "/s"
    line.pad(to: max(22 - text.count, 10))
    line.add(text, .number)
    line.pad(to: 24)
    line.add(Self.graph(Array(values.suffix(max(width - 26, 0)))), .added)
    return line.text
  }

  private func gaugeLines(_ sample: TopSample, _ width: Int, withZeros: Bool) -> [String] {
    var lines: [String] = []
    var line = LinePainter(width: width, palette: palette)
    for gauge in Self.gauges {
      guard let value = sample.numbers[gauge.member], withZeros || value != 0 else { continue }
      let text = gauge.isBytes ? Self.bytes(value) : grouped(value)
      if line.columns > 0, line.columns + gauge.title.count + text.count + 4 > width {
        lines.append(line.text)
        line = LinePainter(width: width, palette: palette)
      }
      if line.columns > 0 { line.add("  ") }
      line.add("\(gauge.title) ", .dim)
      line.add(text, .number)
    }
    return line.columns > 0 ? lines + [line.text] : lines
  }

  /// The rates per second of a counter between the samples.
  private func series(_ member: String) -> [Int] {
    zip(samples, samples.dropFirst()).map { before, after in
      Self.rate(before.numbers[member] ?? 0, after.numbers[member] ?? 0, after.time &- before.time)
    }
  }

  /// Returns the JSON of the interval between two samples: its rates per second, and what the daemon said at its end.
  static func json(from before: TopSample, to after: TopSample) -> String {
    let nanoseconds = after.time &- before.time
    var rates = ParameterWriter()
    for quantity in Self.rates {
      guard let value = after.numbers[quantity.member] else { continue }
      rates.add(quantity.member, rate(before.numbers[quantity.member] ?? 0, value, nanoseconds))
    }
    var object = ParameterWriter()
    object.add("milliseconds", Int(clamping: nanoseconds / 1_000_000))
    object.add("rates", json: rates.finish())
    object.add("stats", json: after.statsText)
    object.add("clients", json: after.clientsText)
    return object.finish()
  }

  /// A counter that decreased was reset.
  private static func rate(_ before: Int, _ after: Int, _ nanoseconds: UInt64) -> Int {
    guard nanoseconds > 0, after > before else { return 0 }
    let rate = ((Double(after) - Double(before)) * 1e9 / Double(nanoseconds)).rounded()
    // A hostile daemon may send any number.
    return Int(min(rate, 1e15))
  }

  private func clients(_ sample: TopSample) -> [TopSample.Client] {
    let wanted = filter.lowercased()
    let shown = sample.clients.filter { client in
      wanted.isEmpty || "\(client.name) \(client.uid) \(client.pid)".lowercased().contains(wanted)
    }
    let sorted: [TopSample.Client]
    if sort == .client {
      sorted = shown.sorted { ($0.name, $0.connection) < ($1.name, $1.connection) }
    } else {
      sorted = shown.sorted { (number(sort, $1), $0.connection) < (number(sort, $0), $1.connection) }
    }
    return isReversed ? sorted.reversed() : sorted
  }

  private func number(_ column: Column, _ client: TopSample.Client) -> Int {
    switch column {
    case .client: 0
    case .uid: client.uid
    case .pid: client.pid
    case .rate: client.rate
    case .queued: client.queued
    case .held: client.held
    case .lag: client.lag
    case .resets: client.resets
    case .watches: client.watches
    }
  }

  /// Returns the table of connections with its heading.
  private func table(_ clients: [TopSample.Client], _ width: Int) -> [String] {
    let numbers = Column.allCases.filter { $0 != .client }
    let cells = clients.map { client in
      Dictionary(uniqueKeysWithValues: numbers.map { ($0, cell($0, number($0, client))) })
    }
    let widths = Dictionary(
      uniqueKeysWithValues: numbers.map { column in
        // The heading of the sorted column has an arrow.
        (
          column,
          max(column.rawValue.count + (column == sort ? 1 : 0), cells.map { $0[column]?.count ?? 0 }.max() ?? 0) + 2
        )
      })
    func shown(_ name: String) -> String {
      let name = name.inLine
      // On a narrow screen, only the command of `feedclient` is shown.
      return width < 60 && name.hasPrefix("feedclient/") ? String(name.dropFirst("feedclient/".count)) : name
    }
    let names = clients.map { DisplayWidth.columns(of: shown($0.name)) }.max() ?? 0
    // The sorted column and non-empty columns come first.
    let filled = numbers.filter { column in clients.contains { number(column, $0) != 0 } }
    let wanted = [sort] + Self.importance.filter(filled.contains) + Self.importance.filter { !filled.contains($0) }
    var kept: Set<Column> = []
    var left = width - 1 - min(max(names, 8), 13)
    for column in wanted where column != .client && !kept.contains(column) {
      guard let needed = widths[column], needed <= left else { continue }
      kept.insert(column)
      left -= needed
    }
    let columns = numbers.filter(kept.contains)
    let room = width - 1 - columns.reduce(0) { $0 + (widths[$1] ?? 0) }
    let name = min(room, max(names, 7))
    var lines = [header(name, columns, widths, width)]
    for (client, cells) in zip(clients, cells) {
      var line = LinePainter(width: width, palette: palette)
      line.add(LinePainter.cut(shown(client.name), to: name))
      line.pad(to: name)
      for column in columns {
        let text = cells[column] ?? ""
        line.pad(to: line.columns + (widths[column] ?? 0) - text.count)
        line.add(text, number(column, client) > 0 ? .number : .dim)
      }
      lines.append(line.text)
    }
    return lines
  }

  /// The numeric columns, most important first.
  private static let importance: [Column] = [.rate, .queued, .lag, .held, .watches, .pid, .uid, .resets]

  private func cell(_ column: Column, _ value: Int) -> String {
    switch column {
    case .queued, .held: Self.bytes(value)
    case .uid, .pid: "\(value)"
    case .client, .rate, .lag, .resets, .watches: grouped(value)
    }
  }

  private func header(_ name: Int, _ columns: [Column], _ widths: [Column: Int], _ width: Int) -> String {
    var line = LinePainter(width: width, palette: palette)
    func title(_ column: Column) -> String { column.rawValue + (column == sort ? (isReversed ? "↑" : "↓") : "") }
    line.add(LinePainter.cut(title(.client), to: max(name, 7)), sort == .client ? .title : .bold)
    line.pad(to: name)
    for column in columns {
      line.pad(to: line.columns + (widths[column] ?? 0) - title(column).count)
      line.add(title(column), column == sort ? .title : .bold)
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

  private static let helpLines = [
    "Keys", "", "  s S  Tab arrows  sort by the next, previous column", "  r                reverse the order",
    "  /                filter by name, user or process; Esc ends", "  Space            pause",
    "  q                end", "", "↓ and ↑ mark the column of the order.",
    "Rates are those of the last interval; the graphs show 60 intervals.", "", "Any other key goes back.",
  ]
}
