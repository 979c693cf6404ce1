import FeedEngine
import FeedModel
import FeedStorage
import FeedSystem

/// What a durable daemon has besides its engine.
final class DurableState {
  let directory: StateDirectory
  let log: SQLiteLog

  init(directory: consuming StateDirectory, log: SQLiteLog) {
    self.directory = directory
    self.log = log
  }
}

extension Daemon {
  /// Locks the state directory and opens the log in it; nil when nothing is to be kept.
  static func openState(_ options: DaemonOptions, _ environment: Environment) throws -> DurableState? {
    guard let durability = options.durability.ofLog else { return nil }
    guard let path = options.stateDirectory ?? StatePath.standard(environment) else {
      throw StateDirectoryError.unknown
    }
    let directory = try StateDirectory.take(path)
    let epoch = try Random.hex128()
    let file = directory.database
    let log = try PrivateDirectory.withPrivateFiles { () throws(StorageError) in
      try SQLiteLog.open(
        file, durability: durability, freshEpoch: epoch, policy: options.images, software: ProgramVersion.text)
    }
    return DurableState(directory: directory, log: log)
  }

  /// Fills the engine with what is stored, and starts the log's thread.
  static func recover(
    _ engine: Engine, from storage: SQLiteLog, _ limits: Limits, _ notify: Notify, _ log: Log
  ) throws -> RecoveryProgress {
    let start = MonotonicClock.now
    let found = try storage.recover(
      into: EngineRecovery(engine) { progress in
        let text = "recovering: \(progress.elements) elements, \(progress.batches) batches of the journal"
        log.write(.notice, text)
        // The service manager gives up on a start that says nothing.
        try? notify.send(.status(text), .extendTimeout(.seconds(60)))
      })
    engine.adopt(limits)
    storage.report = { isFailure, message in log.write(isFailure ? .error : .notice, message) }
    try storage.start(limits)
    if storage.isImageOverdue {
      storage.writeImage(executed: 0, { engine.catalog.makeImage() }) {
        try? notify.send(.status("recovering: writing an image"), .extendTimeout(.seconds(60)), .watchdog)
        return true
      }
    }
    if let news = storage.beginning.news { log.write(.warning, "\(storage.path): \(news)") }
    let milliseconds = (MonotonicClock.now - start) / 1_000_000
    log.write(
      .notice,
      "\(storage.path): revision \(engine.catalog.revision), \(engine.catalog.feeds.count) feeds, from an image of "
        + "\(found.elements) elements and \(found.batches) batches of the journal, in \(milliseconds) ms")
    return found
  }
}

extension StateBeginning {
  /// What is worth a line; nil when all goes on as it was.
  fileprivate var news: String? {
    switch self {
    case .new, .continued: nil
    case .cut:
      "the last run ended with the system or left no mark, so its last changes may be missing; a new epoch begins"
    case .backup: "this is a backup that was put back; a new epoch begins"
    }
  }
}

extension DaemonOptions.Durability {
  /// The durability of the log; nil when there is none.
  fileprivate var ofLog: FeedStorage.Durability? {
    switch self {
    case .memory: nil
    case .process: .process
    case .disk: .disk
    }
  }
}
