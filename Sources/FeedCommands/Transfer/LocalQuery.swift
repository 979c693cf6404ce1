import FeedClient
import FeedJSON
import FeedQuery

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
    self.invocation = invocation
    self.templates = templates
    self.hasPlaces = hasPlaces
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
    let name = ParameterWriter(feed: feed).finish()
    let kind = try invocation.call(connection, "describe", name, deadline: deadline) { $0.member("kind")?.string }
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
