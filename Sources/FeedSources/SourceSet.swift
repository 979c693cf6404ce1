import FeedModel
import FeedSystem

/// Keeps managed feeds equal to their databases: watches the files, and lets threads read changed databases.
///
/// Used by the loop's thread, which waits for `eventDescriptor`, `reportDescriptor` and `nextDeadline`. A database is
/// read after an event of its files, once a minute, and after a failure with a back-off from half a second to a minute.
/// Invariant: `watched` holds exactly the directories that a source names.
public final class SourceSet {
  private let events: FileEvents
  private let mailbox: SourceMailbox
  private var sources: [String: Source] = [:]
  private var watched: Set<Int32> = []

  public init() throws(SystemError) {
    events = try FileEvents()
    mailbox = try SourceMailbox()
  }

  deinit {
    for source in sources.values { source.end() }
  }

  /// Readable after a file event. Then call `takeEvents`.
  public var eventDescriptor: Int32 { events.descriptor }
  /// Readable when there are reports. Then call `takeReports`.
  public var reportDescriptor: Int32 { mailbox.descriptor }

  /// Schedules a look at a database that reads it also without commits since the last look.
  public func readAgain(_ name: String, now: UInt64) { sources[name]?.readAgain(now: now) }

  /// Replaces the set of databases. Unchanged ones continue.
  public func arrange(_ specifications: [SourceSpecification], now: UInt64) throws(SystemError) {
    let names = Set(specifications.map(\.name))
    for (name, source) in sources where !names.contains(name) {
      source.end()
      sources[name] = nil
    }
    for specification in specifications {
      if let source = sources[specification.name] {
        source.change(to: specification, now: now)
      } else {
        sources[specification.name] = try Source(specification, mailbox, now: now)
      }
    }
    unwatchUnused()
  }

  /// When to call `attend`; nil if nothing is scheduled.
  public var nextDeadline: UInt64? {
    sources.values.compactMap(\.nextLook).min()
  }

  /// Starts the looks that are due.
  public func attend(now: UInt64) {
    for source in sources.values {
      guard let moment = source.nextLook, moment <= now else { continue }
      // Watches the files before the look, so that changes during the look cause events.
      watchFiles(of: source)
      source.look()
    }
  }

  /// Schedules looks at the databases whose files changed.
  public func readEvents(now: UInt64) {
    events.forEach { event in
      for source in sources.values {
        guard event.isOverflow || source.names[event.directory] != nil else { continue }
        if event.isEnd { source.names[event.directory] = nil }
        if event.name.isEmpty || source.names[event.directory]?.contains(event.name) == true {
          source.touch(now: now)
        }
      }
      if event.isEnd { watched.remove(event.directory) }
    }
  }

  /// Returns the reports since the last call, except those for removed or replaced specifications.
  public func takeReports(now: UInt64) -> [SourceReport] {
    mailbox.take().filter { report in sources[report.name]?.finishLook(with: report, now: now) ?? false }
  }

  /// Watches the directories of the files. For a missing directory, watches its nearest existing parent.
  private func watchFiles(of source: Source) {
    let path = source.specification.database
    var names: [Int32: Set<String>] = [:]
    // The path is tried twice, because a directory may be created just before its parent is watched.
    for place in [path, FilePath.resolved(path) ?? path, path] {
      let file = FilePath.name(of: place)
      var wanted: Set<String> = [file, file + "-wal", file + "-journal"]
      var directory = FilePath.directory(of: place)
      while true {
        if let number = events.watch(directory: directory) {
          watched.insert(number)
          names[number, default: []].formUnion(wanted)
          break
        }
        if directory == "/" || directory == "." { break }
        wanted = [FilePath.name(of: directory)]
        directory = FilePath.directory(of: directory)
      }
    }
    source.names = names
    unwatchUnused()
  }

  private func unwatchUnused() {
    let used = sources.values.reduce(into: Set<Int32>()) { $0.formUnion($1.names.keys) }
    for number in watched.subtracting(used) { events.unwatch(number) }
    watched.formIntersection(used)
  }
}
