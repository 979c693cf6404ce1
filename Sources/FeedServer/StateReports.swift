import FeedEngine
import FeedModel
import FeedStorage
import FeedSystem

extension Daemon {
  /// `--check`: verifies a state directory without changing it, and prints what it found.
  /// - Returns: 0 when all is well, 1 when not.
  static func check(_ options: DaemonOptions, _ environment: Environment) -> Int32 {
    do {
      guard let directory = options.stateDirectory ?? StatePath.standard(environment) else {
        throw StateDirectoryError.unknown
      }
      let file = StateDirectory.file(in: directory)
      let identity = ServerIdentity(
        version: ProgramVersion.text, epoch: "", pid: ProcessIdentity.pid, uid: ProcessIdentity.uid,
        durability: "memory")
      let engine = Engine(
        limits: options.limits, identity: identity, seed: try Random.number(), now: Instant(nanoseconds: 0))
      let found = try StateCheck.run(file, into: EngineRecovery(engine) { _ in })
      try StandardStreams.writeAll(text(of: found, file, engine), to: StandardStreams.output)
      return 0
    } catch {
      try? StandardStreams.writeAll("feedd: \(error)\n", to: StandardStreams.error)
      return 1
    }
  }

  private static func text(of found: StateCheck.Findings, _ file: String, _ engine: Engine) -> String {
    let catalog = engine.catalog
    var text = """
      \(file): sound
      epoch \(found.epoch), schema \(found.schema), written by feedd \(found.software)
      revision \(catalog.revision): image of revision \(found.recovery.imageRevision) with \(found.recovery.elements) elements, \
      \(found.recovery.batches) batches (\(found.recovery.batchBytes) bytes) of journal after it
      \(catalog.feeds.count) feeds

      """
    for feed in catalog.feeds.values.sorted(by: { $0.name < $1.name }) {
      text += "  \(feed.name): \(feed.kind), \(feed.count) rows, revision \(feed.revision)\n"
    }
    return text
  }
}

extension Daemon {
  /// Says whether a configuration file is right: read, and applied to a daemon that has no feeds yet.
  /// - Returns: 0 when it is, else 1.
  static func checkConfiguration(_ options: DaemonOptions) -> Int32 {
    do {
      guard let file = ConfigurationFile(options) else { return 2 }
      let configuration = try file.read()
      var options = options
      options.limits = file.limits(configuration)
      let engine = try makeEngine(options, nil, Log(threshold: .error, style: .timestamps))
      _ = try file.apply(configuration, to: engine, now: ServerClock(after: 0).now)
      let rules =
        configuration.access.map { "\($0.count) access rules" } ?? "no access rules: everybody may do everything"
      try StandardStreams.writeAll(
        "\(file.path): ok: \(configuration.feedCount) feeds, \(configuration.limits.count) limits, \(rules)\n",
        to: StandardStreams.output)
      return 0
    } catch {
      try? StandardStreams.writeAll("\(error)\n", to: StandardStreams.error)
      return 1
    }
  }
}
