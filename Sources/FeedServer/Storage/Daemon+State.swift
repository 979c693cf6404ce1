import FeedEngine
import FeedModel
import FeedStorage
import FeedSystem

/// What a durable daemon has besides its engine.
final class DurableState {
  let directory: StateDirectory
  let store: Store

  init(directory: consuming StateDirectory, store: Store) {
    self.directory = directory
    self.store = store
  }
}

extension Daemon {
  /// Locks the state directory and opens the store in it; nil when nothing is to be kept.
  static func openState(_ options: DaemonOptions, _ environment: Environment) throws -> DurableState? {
    guard let durability = options.durability.ofStore else { return nil }
    guard let path = options.stateDirectory ?? StatePath.standard(environment) else {
      throw StateDirectoryError.unknown
    }
    let directory = try StateDirectory.take(path)
    let epoch = try Random.hex128()
    let file = directory.database
    let store = try PrivateDirectory.withPrivateFiles { () throws(StorageError) in
      try Store.open(
        file, durability: durability, freshEpoch: epoch, policy: options.images, software: ProgramVersion.text)
    }
    return DurableState(directory: directory, store: store)
  }

  /// Fills the engine with what the store has.
  static func recover(_ engine: Engine, from store: Store, _ limits: Limits, _ notify: Notify, _ log: Log) throws {
    let start = MonotonicClock.now
    let found = try store.recover(
      into: EngineRecovery(engine) { progress in
        let text = "recovering: \(progress.elements) elements, \(progress.batches) batches of the journal"
        log.write(.notice, text)
        // The service manager gives up on a start that says nothing.
        try? notify.send(.status(text), .extendTimeout(.seconds(60)))
      })
    engine.adopt(limits)
    try store.use(limits)
    store.report = { isFailure, message in log.write(isFailure ? .error : .notice, message) }
    store.writeOverdueImage { engine.catalog.makeImage() }
    if let news = store.beginning.news { log.write(.warning, "\(store.path): \(news)") }
    let milliseconds = (MonotonicClock.now - start) / 1_000_000
    log.write(
      .notice,
      "\(store.path): revision \(engine.catalog.revision), \(engine.catalog.feeds.count) feeds, from an image of "
        + "\(found.elements) elements and \(found.batches) batches of the journal, in \(milliseconds) ms")
  }
}

extension Store.Beginning {
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
  /// What the store is asked for; nil when there is none.
  fileprivate var ofStore: FeedStorage.Durability? {
    switch self {
    case .memory: nil
    case .process: .process
    case .disk: .disk
    }
  }
}
