import FeedModel
import FeedSystem

/// Keeps the rows of managed feeds those of their databases: watches the files, and has what changed read by threads.
///
/// Guarded by the loop's thread, which waits on `eventDescriptor` and `reportDescriptor` and until `nextDeadline`. Nothing is
/// polled: a database is looked at after an event of its files, once a minute, and, while something is wrong, after waits
/// that grow from half a second to a minute.
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

  /// Readable when something happened to the files: call `takeEvents`.
  public var eventDescriptor: Int32 { events.descriptor }
  /// Readable when there are reports: call `takeReports`.
  public var reportDescriptor: Int32 { mailbox.descriptor }

  /// Reads these databases from now on, and no others. Those that are read already go on.
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

  /// When `attend` is to be called; nil when nothing is due.
  public var nextDeadline: UInt64? {
    sources.values.compactMap(\.nextLook).min()
  }

  /// Starts the looks that are due.
  public func attend(now: UInt64) {
    for source in sources.values {
      guard let moment = source.nextLook, moment <= now else { continue }
      // Watch first: what happens during the look is seen then.
      watchFiles(of: source)
      source.look()
    }
  }

  /// Notes which databases something happened to.
  public func takeEvents(now: UInt64) {
    events.take { event in
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

  /// The outcomes that came since the last call, without those of what is not read any more.
  public func takeReports(now: UInt64) -> [SourceReport] {
    mailbox.take().filter { report in sources[report.name]?.take(report, now: now) ?? false }
  }

  /// Watches the directories in which the files stand, or would; a missing directory is waited for in the one above.
  private func watchFiles(of source: Source) {
    let path = source.specification.database
    var names: [Int32: Set<String>] = [:]
    // Twice, because a directory may appear just before the one above it is watched.
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
