import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// `select`, `deselect`, `selected` and the notifications that follow.
extension Engine {
  func changeSelection(
    _ method: Method, _ request: Request, _ parameters: Parameters, of session: Session
  ) throws(FeedError) {
    let feed = try feed(parameters, of: session)
    try parameters.refuseBoth("at", "all")
    if method == .select { try feed.checkMaySelect() }
    let all = try parameters.bool("all", default: false)
    let paths = all ? [] : try paths(parameters, of: feed)
    let changed: Bool
    if method == .select {
      try checkSelectable((all ? feed.count : paths.count) + feed.selection.count, request)
      changed = try feed.select(all ? feed.allPaths : paths)
    } else {
      changed = all ? feed.deselectAll() : try feed.deselect(paths)
    }
    if changed { announceSelection(of: feed) }
    try replyWithSelection(request, of: feed, to: session)
  }

  /// Bytes on the wire that a selected row takes at most.
  private static let longestPath = 24

  /// Refuses more selected rows than a frame can tell, wherever they may move.
  private func checkSelectable(_ count: Int, _ request: Request) throws(FeedError) {
    let room = min(room(for: request), limits.maxFrame - 1024)
    guard count > 1 && count > room / Self.longestPath else { return }
    throw .limitExceeded(
      limit: "maxFrame", value: limits.maxFrame, reason: "\(count) selected rows may not fit a frame; select fewer")
  }

  func selected(_ request: Request, _ parameters: Parameters, of session: Session) throws(FeedError) {
    try replyWithSelection(request, of: try feed(parameters, of: session), to: session)
  }

  private func replyWithSelection(_ request: Request, of feed: Feed, to session: Session) throws(FeedError) {
    try reply(request, of: session) { out in
      out.append("\"revision\":")
      out.append(integer: feed.revision)
      out.append(",\"selected\":")
      out.append(feed.selection)
    }
  }

  /// One path, or an array of them.
  private func paths(_ parameters: Parameters, of feed: Feed) throws(FeedError) -> [IndexPath] {
    let at = try parameters.required("at", "index paths [[section, row], …], or \"all\": true")
    if let path = at.path { return [try feed.path(section: path.section, row: path.row)] }
    guard at.kind == .array else { throw Parameters.refuse("at", "must be an array of index paths [section, row]") }
    var paths: [IndexPath] = []
    for element in at.elements {
      guard let path = element.path else {
        throw Parameters.refuse("at", "must hold index paths [section, row] of whole numbers")
      }
      paths.append(try feed.path(section: path.section, row: path.row))
    }
    return paths
  }

  /// Tells every watcher which rows are selected now, in order with its deltas.
  func announceSelection(of feed: Feed) {
    guard let channel = feed.channel as? FeedChannel else { return }
    for watch in channel.watches {
      watch.owesSelection = true
      tellSelection(watch)
    }
  }

  /// Tells a watch that is up to date which rows are selected; one that is not is told once it is.
  func tellSelection(_ watch: Watch) {
    guard watch.owesSelection, watch.isLive, !watch.isEnded, !watch.channel.feed.isGone else { return }
    watch.owesSelection = false
    let start = answers.bytes.count
    let frame = answers.bytes.beginFrame()
    answers.bytes.beginNotification("selection")
    answers.bytes.append("\"feed\":")
    watch.channel.quotedName.withUnsafeBytes { answers.bytes.append($0) }
    answers.bytes.append(",\"revision\":")
    answers.bytes.append(integer: watch.revision)
    answers.bytes.append(",\"selected\":")
    answers.bytes.append(watch.channel.feed.selection)
    answers.bytes.endMessage()
    answers.bytes.endFrame(at: frame)
    queue(watch.session, answers, from: start)
  }
}
