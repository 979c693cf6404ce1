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
      let identity = ServerIdentity(
        version: ProgramVersion.text, epoch: "", pid: ProcessIdentity.pid, uid: ProcessIdentity.uid,
        durability: "memory")
      let seed = try Random.number()
      let (found, target) = try StateCheck.run(directory) {
        EngineRecovery(
          Engine(limits: options.limits, identity: identity, seed: seed, now: Instant(nanoseconds: 0)))
      }
      try write(lines(of: found, directory, target.catalog), to: StandardStreams.output)
      return 0
    } catch {
      try? write(["feedd: \(error)"], to: StandardStreams.error)
      return 1
    }
  }

  private static func lines(
    of found: StateCheck.Findings, _ directory: String, _ catalog: Catalog
  ) -> [String] {
    var lines = [
      "\(directory): sound",
      "epoch \(found.epoch), schema \(found.schema), written by feedd \(found.software)",
      "revision \(grouped(catalog.revision)): image of revision \(grouped(found.recovery.imageRevision)) with "
        + "\(counted(found.recovery.elements, "element")), \(counted(found.recovery.batches, "batch", plural: "batches")) "
        + "(\(counted(found.recovery.batchBytes, "byte"))) of log after it",
    ]
    if found.imagedAt > 0 { lines.append("image of \(WallClock.text(found.imagedAt))") }
    for segment in found.segments {
      lines.append("\(segment.name): \(counted(segment.bytes, "byte")), from batch \(grouped(segment.firstBatch)) on")
    }
    lines.append(counted(catalog.feeds.count, "feed"))
    if found.beginning != .continued { lines.append("the next start begins a new epoch") }
    for feed in catalog.feeds.values.sorted(by: { $0.name < $1.name }) {
      lines.append(
        "  \(feed.name): \(feed.kindName), \(counted(feed.count, "row")), revision \(grouped(feed.revision))")
    }
    return lines
  }
}
