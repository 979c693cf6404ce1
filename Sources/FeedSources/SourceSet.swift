import FeedModel
import FeedSystem

/// Keeps managed feeds equal to their databases: watches the files, and lets threads read changed databases.
///
/// Used by the loop's thread, which waits for `eventDescriptor`, `reportDescriptor` and `nextDeadline`. A database is
/// read after an event of its files, every ten seconds, and after a failure with a back-off from half a second to ten
/// seconds.
public final class SourceSet {
  private var files: FileWatches
  private let mailbox: SourceMailbox
  private var sources: [String: Source] = [:]

  /// - Parameter makeEvents: creates the queue of file events; tests pass their own.
  public init(
    makeEvents: @escaping () throws(FileEventsError) -> FileEvents = { () throws(FileEventsError) in try FileEvents() }
  ) throws(SystemError) {
    files = FileWatches(makeEvents: makeEvents)
    mailbox = try SourceMailbox()
  }

  /// Readable after a file event. Then call ``readEvents(now:)``. Nil while the system has no queue for events.
  public var eventDescriptor: Int32? { files.descriptor }
  /// Readable when there are reports. Then call ``takeReports(now:)``.
  public var reportDescriptor: Int32 { mailbox.descriptor }

  /// Schedules a look at a database that reads it also without commits since the last look.
  public func readAgain(_ name: String, now: UInt64) { sources[name]?.readAgain(now: now) }

  /// Looks at all databases at once, as if for the first time.
  public func startOver(now: UInt64) {
    for source in sources.values { source.startOver(now: now) }
  }

  /// Replaces the set of databases. Unchanged ones continue.
  public func arrange(_ specifications: [SourceSpecification], now: UInt64) {
    let names = Set(specifications.map(\.name))
    for name in sources.keys where !names.contains(name) {
      sources[name] = nil
      files.forget(name)
    }
    for specification in specifications {
      if let source = sources[specification.name] {
        source.change(to: specification, now: now)
      } else {
        sources[specification.name] = Source(specification, mailbox, now: now)
      }
    }
  }

  /// When to call `attend`; nil if nothing is scheduled.
  public var nextDeadline: UInt64? {
    sources.values.compactMap(\.nextLook).min()
  }

  /// Starts the looks that are due.
  public func attend(now: UInt64) {
    for (name, source) in sources {
      guard let moment = source.nextLook, moment <= now else { continue }
      // Watches the files before the look, so that changes during the look cause events.
      source.look(blindness: files.watch(source.specification.database, for: name))
    }
  }

  /// Schedules looks at the databases whose files changed.
  public func readEvents(now: UInt64) {
    for name in files.takeChanged() { sources[name]?.touch(now: now) }
  }

  /// Returns the reports since the last call, except those for removed or replaced specifications.
  public func takeReports(now: UInt64) -> [SourceReport] {
    mailbox.take().compactMap { report in
      guard let source = sources[report.name], source.finishLook(with: report, now: now) else { return nil }
      var report = report
      report.blindness = source.blindness
      return report
    }
  }
}
