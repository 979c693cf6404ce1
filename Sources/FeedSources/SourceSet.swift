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
  public func startOver(now: UInt64) { for source in sources.values { source.startOver(now: now) } }

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
  public var nextDeadline: UInt64? { sources.values.compactMap(\.nextLook).min() }

  /// Starts the looks that are due.
  public func attend(now: UInt64) {
    for (name, source) in sources {
      guard let moment = source.nextLook, moment <= now else { continue }
      // Watches the files before the look, so that changes during the look cause events.
      source.look(blindness: files.watch(source.specification.database, for: name))
    }
  }

  /// Schedules looks at the databases whose files changed.
  public func readEvents(now: UInt64) { for name in files.takeChanged() { sources[name]?.touch(now: now) } }

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

/// The directories that are watched for the databases, and the feeds that each of their events concerns.
///
/// All directories on the way to a database are watched, because renaming one of them, or changing a link, replaces the
/// database without any event in its own directory. Invariant: the system watches exactly the directories in `feeds`.
private struct FileWatches {
  private let makeEvents: () throws(FileEventsError) -> FileEvents
  /// The queue of events; nil if the system has none left. Then it is tried again for each database.
  private var events: FileEvents?
  /// For each feed, the names whose events matter, by the number of their directory.
  private var names: [String: [Int32: Set<String>]] = [:]
  private var feeds: [Int32: Set<String>] = [:]

  init(makeEvents: @escaping () throws(FileEventsError) -> FileEvents) { self.makeEvents = makeEvents }

  /// Readable after an event; nil while there is no queue.
  var descriptor: Int32? { events?.descriptor }

  /// Watches whatever may make a path name another database, and the files that change with the database. Replaces what was
  /// watched for the feed.
  /// - Returns: why changes may go unnoticed; nil if all are reported.
  mutating func watch(_ path: String, for feed: String) -> String? {
    do throws(FileEventsError) {
      if events == nil { events = try makeEvents() }
    } catch {
      return "\(error)"
    }
    var found: [Int32: Set<String>] = [:]
    var reason: String?
    DirectoryEntries.walk(path) { directory, name, isLast in
      do throws(FileEventsError) {
        guard let number = try events?.watch(directory: directory, for: isLast ? .contents : .names) else { return }
        found[number, default: []].formUnion(isLast ? [name, name + "-wal", name + "-journal"] : [name])
      } catch {
        reason = reason ?? "\(error)"
      }
      if isLast && FilePath.isRemote(directory) {
        reason = reason ?? "\(directory) is on a file system of another machine, which reports no changes by others"
      }
    }
    replace(found, for: feed)
    return reason
  }

  mutating func forget(_ feed: String) { replace([:], for: feed) }

  private mutating func replace(_ found: [Int32: Set<String>], for feed: String) {
    let former = names.updateValue(found, forKey: feed) ?? [:]
    if found.isEmpty { names[feed] = nil }
    for number in found.keys { feeds[number, default: []].insert(feed) }
    for number in former.keys where found[number] == nil {
      feeds[number]?.remove(feed)
      guard feeds[number]?.isEmpty == true else { continue }
      feeds[number] = nil
      events?.unwatch(number)
    }
  }

  /// Returns the feeds whose databases may have changed by the next events.
  mutating func takeChanged() -> Set<String> {
    var changed: Set<String> = []
    events?.forEach { event in
      if event.isOverflow { return changed.formUnion(names.keys) }
      for feed in feeds[event.directory] ?? [] {
        let isConcerned = event.name.isEmpty || names[feed]?[event.directory]?.contains(event.name) == true
        if isConcerned { changed.insert(feed) }
        if event.isEnd { names[feed]?[event.directory] = nil }
      }
      if event.isEnd { feeds[event.directory] = nil }
    }
    return changed
  }
}
