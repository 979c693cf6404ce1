import FeedEngine
import FeedJSON
import FeedModel
import FeedStorage
import FeedSystem

extension Daemon {
  /// `--check`: verifies a state directory without changing it, and prints the result.
  /// - Returns: 0 if it is valid, otherwise 1.
  static func check(_ options: DaemonOptions, _ environment: Environment) -> Int32 {
    do {
      guard let directory = options.stateDirectory ?? StatePath.standard(environment) else {
        throw StateDirectoryError.unknown
      }
      let file = StateDirectory.database(in: directory)
      let identity = ServerIdentity(
        version: ProgramVersion.text, epoch: "", pid: ProcessIdentity.pid, uid: ProcessIdentity.uid,
        durability: "memory")
      let engine = Engine(
        limits: options.limits, identity: identity, seed: try Random.number(), now: Instant(nanoseconds: 0))
      let found = try StateCheck.run(file, into: EngineRecovery(engine))
      try write(lines(of: found, file, engine), to: StandardStreams.output)
      return 0
    } catch {
      try? write(["feedd: \(error)"], to: StandardStreams.error)
      return 1
    }
  }

  private static func lines(of found: StateCheck.Findings, _ file: String, _ engine: Engine) -> [String] {
    let catalog = engine.catalog
    var lines = [
      "\(file): sound",
      "epoch \(found.epoch), schema \(found.schema), written by feedd \(found.software)",
      "revision \(grouped(catalog.revision)): image of revision \(grouped(found.recovery.imageRevision)) with "
        + "\(counted(found.recovery.elements, "element")), \(counted(found.recovery.batches, "batch", plural: "batches")) "
        + "(\(counted(found.recovery.batchBytes, "byte"))) of journal after it",
      counted(catalog.feeds.count, "feed"),
    ]
    if found.beginning != .continued { lines.append("the next start begins a new epoch") }
    for feed in catalog.feeds.values.sorted(by: { $0.name < $1.name }) {
      lines.append(
        "  \(feed.name): \(feed.kindName), \(counted(feed.count, "row")), revision \(grouped(feed.revision))")
    }
    return lines
  }
}

extension Daemon {
  /// `--check-config`: reads a configuration file and applies it to an engine without feeds.
  /// - Returns: 0 if it is valid, otherwise 1.
  static func checkConfiguration(_ options: DaemonOptions) -> Int32 {
    do {
      guard let file = ConfigurationFile(options) else { return 2 }
      let configuration = try verify(file, options)
      let rules =
        configuration.access.map { counted($0.count, "access rule") }
        ?? "no access rules: every client may do everything"
      let (feeds, limits) = (counted(configuration.feedCount, "feed"), counted(configuration.limits.count, "limit"))
      try write(["\(file.path): ok: \(feeds), \(limits), \(rules)"], to: StandardStreams.output)
      return 0
    } catch {
      try? write(["\(error)"], to: StandardStreams.error)
      return 1
    }
  }

  /// `--reload` and `--check-reload`: verify the configuration file with which a running daemon was started. `--reload`
  /// then sends SIGHUP to the daemon. So a service manager's reload fails if the file is invalid, and the daemon keeps
  /// its configuration.
  /// - Returns: 0 if the file is valid and the signal was sent, otherwise 1.
  static func reload(_ pid: Int, signals: Bool) -> Int32 {
    do {
      guard let name = try? SmallFile.read("/proc/\(pid)/comm") else {
        throw UsageError("cannot reload process \(pid): there is no such process")
      }
      guard try name == SmallFile.read("/proc/self/comm") else {
        throw UsageError("cannot reload process \(pid): it is not feedd")
      }
      let words = try SmallFile.read("/proc/\(pid)/cmdline").split(separator: 0, omittingEmptySubsequences: false)
      let arguments = words.dropFirst().dropLast().map { String(decoding: $0, as: UTF8.self) }
      guard case .run(var options) = try DaemonOptions.parse(arguments, environment: Environment([:]), width: 80) else {
        throw UsageError("cannot reload process \(pid): it does not run as a daemon")
      }
      if let path = options.configurationPath {
        options.configurationPath = path.hasPrefix("/") ? path : "/proc/\(pid)/cwd/\(path)"
        if let file = ConfigurationFile(options) { _ = try verify(file, options) }
      }
      if signals { try ProcessIdentity.send(SignalQueue.hangUp, to: Int32(pid)) }
      return 0
    } catch {
      try? write(["feedd: \(error)"], to: StandardStreams.error)
      return 1
    }
  }

  /// Reads a configuration file and applies it to an engine without feeds.
  private static func verify(_ file: ConfigurationFile, _ options: DaemonOptions) throws -> Configuration {
    let configuration = try file.read()
    var options = options
    options.limits = file.limits(configuration)
    let engine = try makeEngine(options, nil, Log(threshold: .error, style: .timestamps))
    _ = try file.apply(configuration, to: engine, now: ServerClock(after: 0).now)
    return configuration
  }
}
