import FeedEngine
import FeedModel
import FeedSources
import FeedSystem

/// Handing the rows of databases to the managed feeds.
extension EventLoop {
  /// Has the databases of the managed feeds read, and no others.
  mutating func arrangeSources() {
    let specifications = engine.managedFeeds.map { specification(of: $0) }
    do throws(SystemError) {
      if sources == nil && !specifications.isEmpty { try openSources() }
      try sources?.arrange(specifications, now: now.nanoseconds)
    } catch {
      log.write(.error, "\(error); managed feeds are not read")
    }
  }

  private mutating func openSources() throws(SystemError) {
    let set = try SourceSet()
    try poll.add(set.eventDescriptor, .readable, token: Self.fileEventToken)
    try poll.add(set.reportDescriptor, .readable, token: Self.sourceReportToken)
    sources = set
  }

  private func specification(of feed: ManagedFeed) -> SourceSpecification {
    let limits = engine.limits
    return SourceSpecification(
      name: feed.name, database: feed.content.database, query: feed.content.query, id: feed.content.id,
      section: feed.content.section, maxRows: limits.maxElements, maxRowBytes: limits.elementRoom,
      maxBytes: limits.maxBytes)
  }

  /// Gives the feeds what was read.
  func takeSourceReports() {
    for report in sources?.takeReports(now: now.nanoseconds) ?? [] {
      switch report.outcome {
      case .unchanged: break
      case .rows(let rows): take(rows, of: report.name)
      case .failed(let reason): note(reason, about: report.name)
      }
    }
  }

  private func take(_ rows: ManagedRows, of name: String) {
    let before = engine.sourceStatus(of: name)
    if let reason = engine.setManaged(name, rows, now: now, time: WallClock.text) {
      if before?.message != reason { log.write(.warning, "managed feed \(name): \(reason); it keeps its last rows") }
    } else if before?.state != .ok {
      log.write(.notice, "managed feed \(name): \(rows.count) rows")
    }
  }

  private func note(_ reason: String, about name: String) {
    guard engine.setSource(name, SourceStatus(.error, message: reason, since: WallClock.text)) else { return }
    log.write(.warning, "managed feed \(name): \(reason); it keeps its last rows")
  }
}
