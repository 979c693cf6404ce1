import FeedEngine
import FeedModel
import FeedSources
import FeedSystem

/// The databases of the managed feeds.
///
/// No resources are opened before there is a managed feed.
struct ManagedSources {
  private var sources: SourceSet?
  /// The engine's `managedVersion` at the last call of `arrange`.
  private var arrangedVersion: Int?

  /// Updates the set of databases to that of the current managed feeds. O(1) if no managed feed changed.
  /// - Returns: once, descriptors to poll from then on. They are owned by this value.
  mutating func arrange(_ engine: Engine, now: Instant) throws(SystemError) -> (files: Int32, reports: Int32)? {
    if engine.managedVersion == arrangedVersion { return nil }
    arrangedVersion = engine.managedVersion
    let specifications = engine.managedFeeds.map { Self.specification(of: $0, engine.limits) }
    var opened: (files: Int32, reports: Int32)?
    if sources == nil && !specifications.isEmpty {
      let set = try SourceSet()
      opened = (set.eventDescriptor, set.reportDescriptor)
      sources = set
    }
    try sources?.arrange(specifications, now: now.nanoseconds)
    return opened
  }

  /// Handles file events.
  func readFileEvents(now: Instant) { sources?.readEvents(now: now.nanoseconds) }

  /// Sets the rows that were read on their feeds.
  func applyReports(to engine: Engine, now: Instant) {
    for report in sources?.takeReports(now: now.nanoseconds) ?? [] {
      switch report.outcome {
      case .unchanged:
        // The feed refused the rows. There may be room for them now.
        if engine.hasSourceError(report.name) { sources?.readAgain(report.name, now: now.nanoseconds) }
      case .rows(let rows): engine.setManaged(report.name, rows, now: now, time: WallClock.text)
      case .failed(let reason):
        engine.setSource(report.name, SourceStatus(.error, message: reason, since: WallClock.text))
      }
    }
  }

  /// The time to call ``attend(now:)``; nil if there is none.
  var deadline: Instant? { sources?.nextDeadline.map(Instant.init(nanoseconds:)) }

  /// Starts reading the databases that are due.
  func attend(now: Instant) { sources?.attend(now: now.nanoseconds) }

  private static func specification(of feed: ManagedKind, _ limits: Limits) -> SourceSpecification {
    SourceSpecification(
      name: feed.name, database: feed.content.database, query: feed.content.query, id: feed.content.id,
      section: feed.content.section, maxRows: limits.maxElements, maxRowBytes: limits.elementRoom,
      maxBytes: limits.maxBytes)
  }
}
