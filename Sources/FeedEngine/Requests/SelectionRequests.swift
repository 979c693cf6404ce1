import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// `select`, `deselect`, `selected` and the notification `selection`.
extension Engine {
  func changeSelection(
    _ method: Method, _ parameters: Parameters, _ reply: Reply
  ) throws(FeedError) {
    let feed = try feed(parameters, of: reply.session)
    try parameters.refuseBoth("at", "all")
    if method == .select { try feed.checkMaySelect() }
    let all = try parameters.bool("all", default: false)
    let paths = all ? [] : try paths(parameters, of: feed, method, reply)
    let changed: Bool
    if method == .select {
      if all && feed.behaviours.multiple { try catalog.checkSelected(feed.count, of: feed) }
      if all { try checkSelectable(feed.count + feed.selection.count, reply) }
      changed = try feed.select(
        all ? feed.allPaths : paths, namedBy: all ? "all" : "at",
        checkRoom: { count throws(FeedError) in try catalog.checkSelected(count, of: feed) },
        mayName: { mayRead($0, reply.session.peer) }, commit.pace)
    } else {
      changed = all ? feed.deselectAll() : try feed.deselect(paths)
    }
    if changed { announceSelection(of: feed) }
    try answer(reply, withSelectionOf: feed)
  }

  /// The maximum bytes of a selected row on the wire.
  private static let longestPath = 24

  /// Throws if the paths of the selected rows would not fit in a frame, wherever the rows may move.
  private func checkSelectable(_ count: Int, _ reply: Reply) throws(FeedError) {
    let room = min(reply.room, limits.maxFrame - 1024)
    guard count > 1 && count > room / Self.longestPath else { return }
    throw limits.exceeded(\.maxFrame, "\(grouped(count)) selected rows may not fit a frame; select fewer")
  }

  func selected(_ parameters: Parameters, _ reply: Reply) throws(FeedError) {
    try answer(reply, withSelectionOf: try feed(parameters, of: reply.session))
  }

  private func answer(_ reply: Reply, withSelectionOf feed: Feed) throws(FeedError) {
    try answer(reply) { out in
      out.append("\"revision\":", integer: feed.revision)
      out.append(",\"selected\":")
      out.append(feed.selection)
    }
  }

  /// Returns the paths of the parameter `at`, which is one path or an array of paths.
  ///
  /// - Throws: for `select` also as `checkSelectable`, before many paths are read.
  private func paths(
    _ parameters: Parameters, of feed: Feed, _ method: Method, _ reply: Reply
  ) throws(FeedError) -> [IndexPath] {
    let at = try parameters.required("at", "index paths [[section, row], …], or \"all\": true")
    let path = at.path
    if method == .select { try checkSelectable((path == nil ? at.count : 1) + feed.selection.count, reply) }
    if let path { return [try feed.path(section: path.section, row: path.row)] }
    guard at.kind == .array else { throw Parameters.refuse("at", "must be an array of index paths [section, row]") }
    let rows = try list(at) { element throws(FeedError) in
      guard let path = element.path else {
        throw Parameters.refuse("at", "must hold index paths [section, row] of integers")
      }
      return (section: path.section, row: path.row)
    }
    return try feed.paths(ofRows: rows, commit.pace)
  }
}
