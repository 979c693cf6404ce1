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

  init(_ invocation: Invocation, _ path: String) throws(Failure) {
    self.invocation = invocation
    do throws(QueryError) {
      self.path = try JSONPath(parsing: path)
    } catch {
      throw .usage("query: '\(path)': \(error)")
    }
  }

  /// Prints the nodes, all at one revision.
  func run(_ feed: String, _ templates: Templates) throws(Failure) {
    if let elementwise = path.elementwise() {
      try run(elementwise, feed, templates)
    } else {
      try runOverDocument(feed, templates)
    }
  }

  private func run(_ path: ElementwisePath, _ feed: String, _ templates: Templates) throws(Failure) {
    let console = invocation.console
    var forwards = path.selection(count: 0)
    // A reverse selection is read forwards. Its nodes are printed at the end.
    var backwards: [Int]?
    var held: [[[UInt8]]] = []
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
        held.append(nodes)
      } else {
        path.evaluate(row.element) { Show.row($0, type: nil, console, templates) }
        try console.flushIfLarge()
      }
    }
    for node in held.reversed().joined() { try show(node, templates) }
  }

  private func show(_ node: [UInt8], _ templates: Templates) throws(Failure) {
    var scanner = JSONScanner(maxDepth: 10_100)
    node.withUnsafeBytes { bytes in
      if let view = try? scanner.scan(bytes) { Show.row(view, type: nil, invocation.console, templates) }
    }
    try invocation.console.flushIfLarge()
  }

  private func runOverDocument(_ feed: String, _ templates: Templates) throws(Failure) {
    let console = invocation.console
    var document = ByteBuffer()
    document.append(UInt8(ascii: "["))
    try SnapshotStream(invocation).read(feed) { row throws(Failure) in
      if document.count > 1 { document.append(UInt8(ascii: ",")) }
      document.append(compact: row.element)
    }
    document.append(UInt8(ascii: "]"))
    var scanner = JSONScanner(maxDepth: 10_100)
    if let root = try? scanner.scan(document.bytes) {
      path.evaluate(root) { Show.row($0, type: nil, console, templates) }
    }
  }
}
