import FeedEngine
import FeedGroup
import FeedJSON
import FeedModel
import FeedSources
import FeedSystem

/// The configuration in use: reads its file again and applies it.
///
/// A member of a group announces a configuration first. Invariant: it is applied when the log of the group has the announcement.
struct LiveConfiguration {
  /// The file that is read again; nil if there is none.
  private let file: ConfigurationFile?
  private let socket: SocketSettings
  private let openFiles: OpenFiles
  private let group: GroupLog?
  private let log: Log
  /// The cause of reading the file again, until no batch is executed in part; nil if it need not be read.
  var awaitedReload: String?
  /// A configuration that was announced and is not applied yet.
  private var announced: Announced?
  /// The engine's `failedConfigurations` when the group was told of the feeds in use.
  private var failures = 0
  /// The settings of the group at the start.
  private var groupAtStart: GroupSettings?

  private struct Announced {
    let configuration: Configuration
    let restart: [String]
    /// When its access rules are applied without its feeds; nil if they were.
    var accessDueAt: Instant?
    /// Whether that replaced the former ones.
    var hasReplacedAccess = false
    /// Whether the last report is about it: its feeds wait.
    var isInLastReport = false
  }

  init(_ file: ConfigurationFile?, _ socket: SocketSettings, _ openFiles: OpenFiles, _ group: GroupLog?, _ log: Log) {
    (self.file, self.socket, self.openFiles, self.group, self.log) = (file, socket, openFiles, group, log)
  }

  /// Applies a configuration of the file at the start: definitions and access rules. Without one, tells the group so.
  ///
  /// Stored feeds that the definitions do not fit may be those of clients, who must not be able to prevent a start: then all feeds stay
  /// as they are stored. Those that are as the file defines them are in effect.
  /// - Returns: why the feeds of the file are not in effect; nil if they are.
  /// - Throws: if the file is refused, and no client has changed anything yet, or another host of the group defines a feed differently.
  mutating func begin(
    _ configuration: Configuration?, _ engine: Engine, now: Instant
  ) throws(ConfigurationFileError) -> String? {
    guard let file, let configuration else {
      group?.announce([:])
      return nil
    }
    groupAtStart = file.group(configuration)
    guard try isAccepted(configuration, file) else {
      announced = Announced(configuration: configuration, restart: [], isInLastReport: true)
      let changes = ConfigurationChanges(access: engine.useAccess(of: configuration))
      return tell(
        ConfigurationReport(file: file.path, time: WallClock.text, changes: changes, feedsWait: true), engine
      ).text
    }
    do throws(ConfigurationFileError) {
      _ = tell(try apply(configuration, file, engine, restart: [], now: now), engine)
      return nil
    } catch {
      if engine.catalog.revision == 0 { throw error }
      engine.keepGivenFeeds(of: configuration)
      announceFeedsInUse(engine)
      let changes = ConfigurationChanges(access: engine.useAccess(of: configuration))
      return tell(
        ConfigurationReport(file: file.path, time: WallClock.text, changes: changes, error: "\(error)"), engine
      ).text
    }
  }

  /// Reads the file again and applies it, or announces it. An invalid file changes nothing. Returns what was done; nil if there
  /// is nothing to tell, or not yet.
  mutating func reload(_ cause: String, _ engine: Engine, now: Instant) -> ConfigurationReport? {
    guard let file else {
      log.write(.notice, "\(cause): there is no configuration file to read again; start feedd with --config FILE")
      engine.report(ConfigurationReport(file: nil, time: WallClock.text))
      return nil
    }
    log.write(.notice, "\(cause): reading \(file.path) again")
    do throws(ConfigurationFileError) {
      let configuration = try file.read(under: engine.limits)
      let restart = settingsThatDiffer(file, configuration, engine)
      guard let group else { return tell(try apply(configuration, file, engine, restart: restart, now: now), engine) }
      announced = Announced(
        configuration: configuration, restart: restart, accessDueAt: now.adding(nanoseconds: group.settings.timeout))
      group.announce(configuration.checksums)
      useAccess(engine, now: now)
      return nil
    } catch {
      // A configuration that waits stays announced.
      announced?.isInLastReport = false
      return tell(ConfigurationReport(file: file.path, time: WallClock.text, error: "\(error)"), engine)
    }
  }

  /// Applies the configuration whose announcement the log of the group has now. Returns what was done, or why it was refused;
  /// nil if none was announced or the log has not got it yet.
  mutating func applyAnnounced(_ engine: Engine, now: Instant) -> ConfigurationReport? {
    guard let announced, let file else {
      // What the log has not stored is not in use, though it was announced.
      if failures != engine.failedConfigurations { announceFeedsInUse(engine) }
      return nil
    }
    // The log may have the announcement while the connection is renewed. Until that is done it would refuse the feeds.
    guard let group, let outcome = group.announcement, !group.isAway else {
      useAccess(engine, now: now)
      return nil
    }
    self.announced = nil
    do throws(ConfigurationFileError) {
      if case .refused(let reason) = outcome { throw .group(file.path, .configuration(reason)) }
      return tell(
        try apply(
          announced.configuration, file, engine, restart: announced.restart,
          hasReplacedAccess: announced.hasReplacedAccess, now: now), engine,
        isOfLastReading: announced.isInLastReport)
    } catch {
      engine.keepGivenFeeds(of: announced.configuration)
      announceFeedsInUse(engine)
      let changes = ConfigurationChanges(access: announced.hasReplacedAccess)
      return tell(
        ConfigurationReport(file: file.path, time: WallClock.text, changes: changes, error: "\(error)"), engine,
        isOfLastReading: announced.isInLastReport)
    }
  }

  /// Tells the group that the former feeds stay in use: other hosts may not define these differently.
  private mutating func announceFeedsInUse(_ engine: Engine) {
    failures = engine.failedConfigurations
    group?.announce(Configuration.checksums(of: engine.configuredDefinitions))
  }

  /// When ``applyAnnounced(_:now:)`` should be called, whatever the log does; nil if that need not be.
  var deadline: Instant? { announced?.accessDueAt }

  /// Applies the access rules of the announced configuration if the log is away or does not have the announcement in time. They
  /// concern the clients of this host alone, and may take a right away that must not wait.
  private mutating func useAccess(_ engine: Engine, now: Instant) {
    guard let announced, let due = announced.accessDueAt, let file, let group, now >= due || group.isAway else {
      return
    }
    self.announced?.accessDueAt = nil
    let isOther = engine.useAccess(of: announced.configuration)
    self.announced?.hasReplacedAccess = isOther
    self.announced?.isInLastReport = true
    _ = tell(
      ConfigurationReport(
        file: file.path, time: WallClock.text, changes: ConfigurationChanges(access: isOther),
        restart: announced.restart, feedsWait: true), engine)
  }

  /// Tells the group which feeds a configuration defines, at the start. Returns false if the log has not got this yet.
  /// - Throws: if another host defines one of them differently.
  private func isAccepted(
    _ configuration: Configuration, _ file: ConfigurationFile
  ) throws(ConfigurationFileError) -> Bool {
    guard let group else { return true }
    group.announce(configuration.checksums)
    switch group.awaitAnnouncement(within: group.settings.timeout) {
    case .accepted: return true
    case .refused(let reason): throw .group(file.path, .configuration(reason))
    case nil: return false
    }
  }

  private func apply(
    _ configuration: Configuration, _ file: ConfigurationFile, _ engine: Engine, restart: [String],
    hasReplacedAccess: Bool = false, now: Instant
  ) throws(ConfigurationFileError) -> ConfigurationReport {
    var changes = try file.apply(
      configuration, to: engine, keeping: group?.configuredByOthers ?? [], now: now)
    changes.access = changes.access || hasReplacedAccess
    allowConnections(besideManagedFeeds: configuration.managedFeedCount, engine)
    return ConfigurationReport(file: file.path, time: WallClock.text, changes: changes, restart: restart)
  }

  /// Keeps descriptors for the databases of managed feeds. Connections that are open stay open.
  private func allowConnections(besideManagedFeeds count: Int, _ engine: Engine) {
    let (allowed, shortage) = openFiles.connections(managedFeeds: count)
    if allowed == engine.limits.maxConnections { return }
    engine.limits.maxConnections = allowed
    log.write(.warning, shortage ?? "maxConnections is \(grouped(allowed)) again")
  }

  /// Tells clients and the log what reading the file did.
  private func tell(
    _ report: ConfigurationReport, _ engine: Engine, isOfLastReading: Bool = false
  ) -> ConfigurationReport {
    engine.report(report, isOfLastReading: isOfLastReading)
    let isComplete = report.restart.isEmpty && !report.feedsWait
    let level: LogLevel = report.error != nil ? .error : isComplete ? .notice : .warning
    let file = report.file ?? ""
    log.write(level, report.error == nil ? "\(file): \(report.text)" : report.text)
    return report
  }

  /// The names of settings that take effect only at start, and differ from those that did.
  private func settingsThatDiffer(
    _ file: ConfigurationFile, _ configuration: Configuration, _ engine: Engine
  ) -> [String] {
    var present = engine.limits
    present.maxConnections = openFiles.maxConnections
    let wanted = file.limits(configuration)
    let limits = Limits.all.filter { wanted[keyPath: $0.keyPath] != present[keyPath: $0.keyPath] }.map(\.name)
    return limits + file.socket(configuration).differences(from: socket)
      + (file.group(configuration) == groupAtStart ? [] : ["group"])
  }
}

/// Divides the files that the process may open between connections and the rest of the daemon.
///
/// If the limit of open files cannot be raised to what all need, fewer connections are allowed than `maxConnections`, so that
/// descriptors remain for the reserved connections, for the store and for managed databases.
struct OpenFiles {
  /// The number of descriptors that are not connections: standard streams, the listener, the event queue, the store.
  private static let others = 32
  /// The descriptors of one managed feed: its thread's event, the database, its log, index and journal.
  private static let perManagedFeed = 6

  /// `maxConnections` as it was configured.
  let maxConnections: Int
  private let reserved: Int
  private let raise: (_ wanted: Int) -> Int

  /// - Parameter raise: raises the limit of open files, and returns it; tests pass their own.
  init(_ limits: Limits, raise: @escaping (_ wanted: Int) -> Int = { OpenFileLimit.raise(to: $0) }) {
    maxConnections = limits.maxConnections
    reserved = limits.reservedConnections
    self.raise = raise
  }

  /// Returns how many connections are allowed beside so many managed feeds, and the reason if these are fewer than configured.
  func connections(managedFeeds: Int) -> (allowed: Int, shortage: String?) {
    let rest = Self.others + reserved + managedFeeds * Self.perManagedFeed
    let wanted = maxConnections + rest
    let possible = raise(wanted)
    guard possible < wanted else { return (maxConnections, nil) }
    let allowed = max(possible - rest, 1)
    return (
      allowed,
      "only \(grouped(possible)) files may be open and \(counted(maxConnections, "connection")) want \(grouped(wanted)): "
        + "maxConnections is \(grouped(allowed)); raise the limit (LimitNOFILE), or lower --max-connections"
    )
  }
}

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
  mutating func arrange(_ engine: Engine, now: Instant, poll: (Int32, SocketLink.Wakes) throws(SystemError) -> Void) {
    if let nextTry, nextTry > now { return }
    do throws(SystemError) {
      if engine.managedVersion != arrangedVersion { try arrange(engine.ownManagedFeeds, engine.limits, now: now) }
      arrangedVersion = engine.managedVersion
      if let sources { try self.poll(sources, poll) }
      nextTry = nil
    } catch {
      nextTry = now.adding(nanoseconds: Self.pause)
      let status = SourceStatus(.error, message: "\(error)", since: WallClock.text)
      for feed in engine.managedFeeds { engine.failManaged(feed.name, status) }
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
  /// - Parameter engine: nil while the daemon ends, so that no new rows delay its end.
  func applyReports(to engine: Engine?, now: Instant) {
    let reports = sources?.takeReports(now: now.nanoseconds) ?? []
    guard let engine else { return }
    for report in reports {
      let status = SourceStatus.readable(blindness: report.blindness, since: WallClock.text)
      switch report.outcome {
      case .unchanged:
        if !engine.keepManaged(report.name, status) { sources?.readAgain(report.name, now: now.nanoseconds) }
      case .rows(let rows): engine.setManaged(report.name, rows, status, now: now)
      case .failed(let reason):
        engine.failManaged(report.name, SourceStatus(.error, message: reason, since: status.since))
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
