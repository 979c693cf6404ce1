import FeedEngine
import FeedModel
import FeedSources
import FeedSystem

/// The databases of the managed feeds.
///
/// No resources are opened before there is a managed feed. If the system has none, they are tried again every few seconds.
struct ManagedSources {
  /// Nanoseconds before resources that the system did not have are tried again.
  private static let pause: UInt64 = 2_000_000_000

  private var sources: SourceSet?
  /// The engine's `managedVersion` at the last call of `arrange` that succeeded.
  private var arrangedVersion: Int?
  /// When to arrange again after a failure.
  private var nextTry: Instant?
  /// The descriptors that are polled.
  private var polled: (files: Int32, reports: Int32) = (-1, -1)

  /// Updates the set of databases to that of the current managed feeds, and polls what reports their changes. O(1) if neither
  /// changed.
  mutating func arrange(
    _ engine: Engine, now: Instant, poll: (Int32, SocketLink.Wakes) throws(SystemError) -> Void
  ) {
    if let nextTry, nextTry > now { return }
    do throws(SystemError) {
      if engine.managedVersion != arrangedVersion { try arrange(engine.ownManagedFeeds, engine.limits, now: now) }
      arrangedVersion = engine.managedVersion
      if let sources { try self.poll(sources, poll) }
      nextTry = nil
    } catch {
      nextTry = now.adding(nanoseconds: Self.pause)
      let status = SourceStatus(.error, message: "\(error)", since: WallClock.text)
      for feed in engine.managedFeeds { engine.setSource(feed.name, status) }
    }
  }

  private mutating func arrange(_ feeds: [ManagedKind], _ limits: Limits, now: Instant) throws(SystemError) {
    if sources == nil && !feeds.isEmpty { sources = try SourceSet() }
    sources?.arrange(feeds.map { SourceSpecification($0.name, $0.content, limits) }, now: now.nanoseconds)
  }

  private mutating func poll(
    _ sources: SourceSet, _ poll: (Int32, SocketLink.Wakes) throws(SystemError) -> Void
  ) throws(SystemError) {
    if polled.reports != sources.reportDescriptor {
      try poll(sources.reportDescriptor, .sourceReports)
      polled.reports = sources.reportDescriptor
    }
    if let files = sources.eventDescriptor, polled.files != files {
      try poll(files, .fileEvents)
      polled.files = files
    }
  }

  /// Looks at all databases at once, as if for the first time.
  mutating func startOver(now: Instant) {
    nextTry = nil
    sources?.startOver(now: now.nanoseconds)
  }

  func readFileEvents(now: Instant) { sources?.readEvents(now: now.nanoseconds) }

  /// Sets the rows that were read on their feeds.
  func applyReports(to engine: Engine, now: Instant) {
    for report in sources?.takeReports(now: now.nanoseconds) ?? [] {
      let status = SourceStatus.readable(blindness: report.blindness, since: WallClock.text)
      switch report.outcome {
      case .unchanged:
        if !engine.keepManaged(report.name, status) { sources?.readAgain(report.name, now: now.nanoseconds) }
      case .rows(let rows): engine.setManaged(report.name, rows, status, now: now)
      case .failed(let reason):
        engine.setSource(report.name, SourceStatus(.error, message: reason, since: status.since))
      }
    }
  }

  /// The time to call ``attend(now:)``; nil if there is none.
  var deadline: Instant? {
    let look = sources?.nextDeadline.map(Instant.init(nanoseconds:))
    guard let nextTry else { return look }
    return look.map { min($0, nextTry) } ?? nextTry
  }

  /// Starts reading the databases that are due.
  func attend(now: Instant) { sources?.attend(now: now.nanoseconds) }
}

extension SourceSpecification {
  init(_ name: String, _ definition: ManagedDefinition, _ limits: Limits) {
    self.init(
      name: name, database: definition.database, query: definition.query, id: definition.id,
      section: definition.section,
      maxRows: limits.maxElements, maxRowBytes: limits.elementRoom, maxBytes: limits.maxBytes)
  }
}
