import FeedSystem

/// The directories that are watched for the databases, and the feeds that each of their events concerns.
///
/// All directories on the way to a database are watched, because renaming one of them, or changing a link, replaces the
/// database without any event in its own directory. Invariant: the system watches exactly the directories in `feeds`.
struct FileWatches {
  private let makeEvents: () throws(FileEventsError) -> FileEvents
  /// The queue of events; nil if the system has none left. Then it is tried again for each database.
  private var events: FileEvents?
  /// For each feed, the names whose events matter, by the number of their directory.
  private var names: [String: [Int32: Set<String>]] = [:]
  /// The feeds of each directory.
  private var feeds: [Int32: Set<String>] = [:]

  /// - Parameter makeEvents: creates the queue of events; tests pass their own.
  init(makeEvents: @escaping () throws(FileEventsError) -> FileEvents) {
    self.makeEvents = makeEvents
  }

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
      if isLast && FileSystemKind.isRemote(directory) {
        reason = reason ?? "\(directory) is on a file system of another machine, which reports no changes by others"
      }
    }
    replace(found, for: feed)
    return reason
  }

  /// Stops watching for a feed.
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

  /// Returns the feeds whose databases may have changed since the last call.
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
