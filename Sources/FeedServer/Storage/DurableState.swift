import FeedEngine
import FeedJSON
import FeedModel
import FeedStorage
import FeedSystem

/// The storage of a daemon with a commit log: the locked state directory and the log in it.
final class DurableState {
  let directory: StateDirectory
  let log: FileLog

  init(directory: consuming StateDirectory, log: FileLog) {
    self.directory = directory
    self.log = log
  }
}

extension Daemon {
  /// Locks the state directory and opens the log in it; nil with durability `memory`.
  static func openState(_ options: DaemonOptions, _ environment: Environment) throws -> DurableState? {
    guard let durability = options.durability.ofLog else { return nil }
    guard let path = options.stateDirectory ?? StatePath.standard(environment) else {
      throw StateDirectoryError.unknown
    }
    let directory = try StateDirectory.lock(path)
    let epoch = try Random.hex128()
    let log = try FileLog.open(
      path, durability: durability, freshEpoch: epoch, policy: options.images, software: ProgramVersion.text,
      skipping: options.skippedBatch.map { Int64($0) }, skipsDamaged: options.skipsDamaged)
    return DurableState(directory: directory, log: log)
  }

  /// Restores the stored state into the engine, and starts the log's thread.
  static func recover(
    _ engine: Engine, from storage: FileLog, _ limits: Limits, _ notify: Notify, _ log: Log
  ) throws -> RecoveryProgress {
    let start = MonotonicClock.now
    let (threshold, style) = (log.threshold, log.style)
    let reporter = try RecoveryReporter { report in
      // A log belongs to one thread.
      let log = Log(threshold: threshold, style: style)
      log.write(.notice, report.text)
      if report.isNewWarning { log.write(.warning, report.warning) }
      try? notify.send(.status(report.text), .extendTimeout(.seconds(60)), .watchdog)
    }
    defer { reporter.stop() }
    let found = try storage.recover(into: EngineRecovery(engine, reporter))
    reporter.stop()
    engine.use(limits)
    var failure: String?
    storage.report = { isFailure, message in
      log.write(isFailure ? .error : .notice, message)
      failure = message
    }
    try PrivateDirectory.withPrivateFiles { () throws(StorageError) in try storage.start(limits) }
    if storage.isImageOverdue {
      var nextReport: UInt64 = 0
      let isWritten = storage.writeImage(executed: 0, { engine.catalog.makeImage() }) {
        if MonotonicClock.now >= nextReport {
          nextReport = MonotonicClock.now &+ 1_000_000_000
          try? notify.send(.status("recovering: writing an image"), .extendTimeout(.seconds(60)), .watchdog)
        }
        return true
      }
      if storage.mustWriteImage && !isWritten {
        throw StorageError(
          .noSpace, path: storage.directory, reason: failure ?? "an image of the state could not be written")
      }
    }
    if let news = storage.beginning.news { log.write(.warning, "\(storage.directory): \(news)") }
    let milliseconds = (MonotonicClock.now - start) / 1_000_000
    log.write(
      .notice,
      "\(storage.directory): revision \(grouped(engine.catalog.revision)), \(counted(engine.catalog.feeds.count, "feed")), from an image of "
        + "\(counted(found.elements, "element")) and \(counted(found.batches, "batch", plural: "batches")) of the log, in \(grouped(milliseconds)) ms"
    )
    return found
  }
}

extension StateBeginning {
  /// A line for the log; nil if the state is new or continues.
  fileprivate var news: String? {
    switch self {
    case .new, .continued: nil
    case .cut:
      "the last run ended with the system, so its last changes may be missing; a new epoch begins"
    case .backup: "this is a restored backup; a new epoch begins"
    case .skipped(let batch): "batch \(batch) of the log was skipped, so its changes are lost; a new epoch begins"
    case .damaged: "the log was cut where it does not verify, so what followed is lost; a new epoch begins"
    }
  }
}

extension DaemonOptions.Durability {
  /// The durability of the log; nil without a log.
  fileprivate var ofLog: FeedStorage.Durability? {
    switch self {
    case .memory: nil
    case .process: .process
    case .disk: .disk
    }
  }
}
