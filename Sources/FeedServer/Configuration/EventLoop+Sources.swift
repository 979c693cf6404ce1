import FeedEngine
import FeedModel
import FeedSources
import FeedSystem

/// Handing the rows of databases to the managed feeds.
extension EventLoop {
  /// Has the databases of the managed feeds read, and no others, when these may have changed.
  mutating func arrangeSources() {
    if engine.managedVersion == arrangedVersion { return }
    arrangedVersion = engine.managedVersion
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
      case .rows(let rows): engine.setManaged(report.name, rows, now: now, time: WallClock.text)
      case .failed(let reason):
        engine.setSource(report.name, SourceStatus(.error, message: reason, since: WallClock.text))
      }
    }
  }
}
