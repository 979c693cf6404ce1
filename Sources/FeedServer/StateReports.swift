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
