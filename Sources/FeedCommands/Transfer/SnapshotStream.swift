import FeedChange
import FeedClient
import FeedJSON
import FeedQuery

/// Reads a feed of any size at one revision: the snapshot of a watch, row by row.
struct SnapshotStream {
  /// The place of a row.
  struct Place {
    var section: Int
    var row: Int
  }

  /// One row. Valid until the handler returns.
  struct Row {
    var place: Place
    var element: JSONView
    var type: String?
  }

  private let invocation: Invocation

  init(_ invocation: Invocation) { self.invocation = invocation }

  /// Reads a feed.
  /// - Parameters:
  ///   - begin: called with the revision and the sections before the first row.
  ///   - take: called with each row in order.
  func read(
    _ feed: String, begin: (WatchStart) throws(Failure) -> Void = { _ in }, _ take: (Row) throws(Failure) -> Void
  ) throws(Failure) {
    let (connection, _) = try invocation.connect(deadline: invocation.deadline())
    var params = ParameterWriter(feed: feed)
    params.add("spanning", json: "true")
    let start = try invocation.call(connection, "watch", params.finish(), deadline: invocation.deadline()) {
      result throws(MalformedMessage) in try WatchStart(result)
    }
    var progress = WatchProgress(start, since: nil, initial: true)
    var places = SnapshotPlaces(start.sections)
    try begin(start)
    while true {
      // Each part must arrive within the deadline. The whole may take longer unless `--timeout` is given.
      let deadline = invocation.deadline()
      while let message = try invocation.attempt(connection.next) {
        guard case .notification(let notification) = message, notification.kind == .snapshot else { continue }
        let reader = MemberReader(object: notification.params, place: "snapshot")
        guard !reader.flag("reset") else {
          throw .state("the feed was defined anew while it was read; run the command again")
        }
        let isLast = reader.flag("last")
        let (at, elements) = try invocation.attempt { () throws(ClientError) in
          let revision = try reading(reader.revision("revision"))
          try checking(progress.record(snapshot: revision, isReset: false, isLast: isLast))
          let (at, elements) = (try reading(reader.path("at")), try reading(reader.array("elements")))
          let count = elements.reduce(0) { count, _ in count + 1 }
          try checking(places.check(at: at, count: count, isLast: isLast))
          places.add(count: count)
          return (at, elements)
        }
        try handOut(elements, at: at, reader.object.member("types")?.elements, places.sections, take)
        if isLast { return }
      }
      try invocation.attempt { () throws(ClientError) in
        guard try connection.wait(until: deadline) else { throw .timedOut }
        try connection.fill()
      }
    }
  }

  /// Calls `take` with the rows of a part. Rows beyond the end of a section continue in the next one.
  private func handOut(
    _ elements: JSONView.Elements, at start: IndexPath, _ types: JSONView.Elements?, _ sections: [SectionSummary],
    _ take: (Row) throws(Failure) -> Void
  ) throws(Failure) {
    var (section, row, types) = (Int(start.section), Int(start.row), types)
    for element in elements {
      while row >= sections[section].count { (section, row) = (section + 1, 0) }
      try take(Row(place: Place(section: section, row: row), element: element, type: types?.next()?.string))
      row += 1
    }
  }

  /// Prints a feed like `snapshot`, without holding it in memory.
  func show(_ feed: String, _ templates: Templates) throws(Failure) {
    let console = invocation.console
    let isJSON = console.isJSON && templates.isEmpty
    var sections: [SectionSummary] = []
    var next = 0
    var types: [String?] = []
    func end() {
      guard isJSON, next > 0 else { return }
      let list = types.map { $0.map(\.quotedAsJSON) ?? "null" }.joined(separator: ",")
      console.printRaw("]" + (types.contains { $0 != nil } ? ",\"types\":[\(list)]" : "") + "}")
      types = []
    }
    func begin(through section: Int) {
      while next <= section, next < sections.count {
        end()
        let section = sections[next]
        if isJSON {
          let heading = ParameterWriter(section).finish().dropLast()
          console.printRaw("\(next == 0 ? "" : ",")\(heading),\"elements\":[")
        } else if !console.isJSON {
          Show.heading(section.name, section.count, console)
        }
        next += 1
      }
    }
    try read(
      feed,
      begin: { start throws(Failure) in
        sections = start.sections
        if isJSON {
          console.printRaw("{\"revision\":\(start.revision),\"sections\":[")
        } else if !console.isJSON {
          console.print("revision \(grouped(Int(clamping: start.revision)))")
        }
      }
    ) { row throws(Failure) in
      begin(through: row.place.section)
      if isJSON {
        console.printRaw(row.place.row == 0 ? "" : ",")
        console.printRaw(row.element.compactText)
        types.append(row.type)
      } else {
        Show.row(row.element, type: row.type, indent: console.isJSON ? "" : "  ", console, templates)
      }
      try console.flushIfLarge()
    }
    begin(through: sections.count - 1)
    end()
    if isJSON { console.printRaw("]}\n") }
    try console.flush()
  }
}

/// A JSONPath over the elements of a feed, evaluated by this program because the feed is too large for a query of the
/// daemon.
///
/// A path whose first segment selects elements separately needs memory for one element or, in reverse order, for its
/// nodes. Any other path needs memory for the whole feed.
struct LocalQuery {
  private let invocation: Invocation
  private let path: JSONPath
  private let templates: Templates
  /// Whether to print the place of each node's element.
  private let hasPlaces: Bool

  init(_ invocation: Invocation, _ path: String, _ templates: Templates, hasPlaces: Bool) throws(Failure) {
    (self.invocation, self.templates, self.hasPlaces) = (invocation, templates, hasPlaces)
    do throws(QueryError) {
      self.path = try JSONPath(parsing: path)
    } catch {
      throw .usage("query: '\(path)': \(error)")
    }
  }

  /// Prints the nodes, all at one revision.
  func run(_ feed: String) throws(Failure) {
    let deadline = invocation.deadline()
    let (connection, _) = try invocation.connect(deadline: deadline)
    let kind = try invocation.describe(feed, over: connection, deadline: deadline) { $0.member("kind")?.string }
    if kind == "single" { return try runOverElement(of: feed) }
    if let elementwise = path.elementwise() { try run(elementwise, feed) } else { try runOverDocument(feed) }
  }

  private func run(_ path: ElementwisePath, _ feed: String) throws(Failure) {
    let console = invocation.console
    var forwards = path.selection(count: 0)
    // A reverse selection is read forwards. Its nodes are printed at the end.
    var backwards: [Int]?
    var held: [(at: SnapshotStream.Place, nodes: [[UInt8]])] = []
    var next: Int?
    var place = 0
    try SnapshotStream(invocation).read(
      feed,
      begin: { start throws(Failure) in
        let count = start.sections.reduce(0) { $0 + $1.count }
        forwards = path.selection(count: count)
        var probe = forwards
        if let first = probe.next(), let second = probe.next(), second < first { backwards = Array(forwards) }
        next = backwards == nil ? forwards.next() : backwards?.popLast()
      }
    ) { row throws(Failure) in
      defer { place += 1 }
      guard place == next else { return }
      next = backwards == nil ? forwards.next() : backwards?.popLast()
      if backwards != nil {
        var nodes: [[UInt8]] = []
        path.evaluate(row.element) { nodes.append($0.compactText) }
        held.append((row.place, nodes))
      } else {
        path.evaluate(row.element) { show($0, at: row.place) }
        try console.flushIfLarge()
      }
    }
    for (place, nodes) in held.reversed() {
      for node in nodes { try show(node, at: place) }
    }
  }

  /// A path over a single is evaluated on its element instead of an array.
  private func runOverElement(of feed: String) throws(Failure) {
    try SnapshotStream(invocation).read(feed) { row throws(Failure) in
      path.evaluate(row.element) { show($0, at: row.place) }
    }
  }

  private func show(_ node: JSONView, at place: SnapshotStream.Place?) {
    if hasPlaces {
      Show.placedNode(node, at: place.map { "[\($0.section),\($0.row)]" } ?? "null", invocation.console)
    } else {
      Show.row(node, type: nil, invocation.console, templates)
    }
  }

  private func show(_ node: [UInt8], at place: SnapshotStream.Place) throws(Failure) {
    _ = node.readJSON { show($0, at: place) }
    try invocation.console.flushIfLarge()
  }

  private func runOverDocument(_ feed: String) throws(Failure) {
    var document = ByteBuffer()
    document.append(UInt8(ascii: "["))
    // The place of each element and the offset of its text, in the order of the elements.
    var elements: [(start: Int, place: SnapshotStream.Place)] = []
    try SnapshotStream(invocation).read(feed) { row throws(Failure) in
      if document.count > 1 { document.append(UInt8(ascii: ",")) }
      if hasPlaces { elements.append((document.count, row.place)) }
      document.append(compact: row.element)
    }
    document.append(UInt8(ascii: "]"))
    var scanner = JSONScanner(maxDepth: 10_100)
    guard let root = try? scanner.scan(document.bytes) else { return }
    path.evaluate(root) { node in
      // The array itself begins before every element and has no place.
      let next = elements.indices.partitionPoint { elements[$0].start <= node.byteOffset }
      show(node, at: next > 0 ? elements[next - 1].place : nil)
    }
  }
}
