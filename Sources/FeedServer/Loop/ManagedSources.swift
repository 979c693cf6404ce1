import FeedEngine
import FeedModel
import FeedSources
import FeedSystem

/// The databases of the managed feeds: which are read, and what becomes of the rows.
///
/// Nothing is opened before there is a managed feed.
struct ManagedSources {
  private var sources: SourceSet?
  /// The engine's count of changes of managed feeds when the databases were arranged last.
  private var arrangedVersion: Int?

  /// Reads the databases of the present managed feeds and no others. O(1) when no managed feed has changed.
  /// - Returns: descriptors to poll from now on, once; they belong to this value.
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

  /// Takes events of the file system.
  func takeFileEvents(now: Instant) { sources?.takeEvents(now: now.nanoseconds) }

  /// Gives the feeds the rows that were read.
  func takeReports(_ engine: Engine, now: Instant) {
    for report in sources?.takeReports(now: now.nanoseconds) ?? [] {
      switch report.outcome {
      case .unchanged: break
      case .rows(let rows): engine.setManaged(report.name, rows, now: now, time: WallClock.text)
      case .failed(let reason):
        engine.setSource(report.name, SourceStatus(.error, message: reason, since: WallClock.text))
      }
    }
  }

  /// When ``attend(now:)`` has something to do; nil for not before an event.
  var deadline: Instant? { sources?.nextDeadline.map(Instant.init(nanoseconds:)) }

  /// Reads the databases that are due.
  func attend(now: Instant) { sources?.attend(now: now.nanoseconds) }

  private static func specification(of feed: ManagedKind, _ limits: Limits) -> SourceSpecification {
    SourceSpecification(
      name: feed.name, database: feed.content.database, query: feed.content.query, id: feed.content.id,
      section: feed.content.section, maxRows: limits.maxElements, maxRowBytes: limits.elementRoom,
      maxBytes: limits.maxBytes)
  }
}
