import FeedEngine
import FeedJSON
import FeedModel
import FeedStorage
import FeedSystem
import Glibc

/// The directory with the state of one daemon, locked against other daemons.
///
/// The directory itself is locked, so that removing the lock file does not admit a second daemon. The lock file beside
/// the database names the process, and excludes daemons that lock only this file.
struct StateDirectory: ~Copyable {
  let path: String
  private let lock: DirectoryLock
  private let file: FileLock

  /// Creates the directory if it is missing, for this user only, and locks it. Refuses a directory that other users
  /// control: they could replace its files. Refuses one in which no image could be written, because its path is too long.
  static func lock(_ path: String) throws(StateDirectoryError) -> StateDirectory {
    let lockPath = lockPath(path)
    var (exposure, bytes): (DirectoryExposure?, Int) = (nil, 0)
    do throws(SystemError) {
      try PrivateDirectory.make(path)
      bytes = (FilePath.resolved(path) ?? path).utf8.count
      if bytes <= StateFile.maxDirectoryBytes, let lock = try DirectoryLock.acquire(path) {
        exposure = try lock.exposure(to: ProcessIdentity.uid)
        if exposure == nil, let file = try FileLock.acquire(lockPath) {
          return StateDirectory(path: path, lock: lock, file: file)
        }
      }
    } catch {
      throw .system(error, path: path)
    }
    if bytes > StateFile.maxDirectoryBytes { throw .tooLong(bytes, path: path) }
    if let exposure { throw .exposed(exposure, path: path) }
    throw .inUse(path: path, pid: FileLock.holder(lockPath))
  }

  private static func lockPath(_ path: String) -> String { "\(path)/feedd.lock" }

  /// Removes the lock file of a directory. The directory itself stays locked until the process ends.
  static func removeLockFile(_ path: String) { FileLock.remove(lockPath(path)) }

  private init(path: String, lock: consuming DirectoryLock, file: consuming FileLock) {
    self.path = path
    self.lock = lock
    self.file = file
  }
}

/// The reason why the daemon cannot use its state directory.
enum StateDirectoryError: Error, Equatable, CustomStringConvertible {
  /// The directory cannot be created or locked.
  case system(SystemError, path: String)
  /// The path has this many bytes, too many for an image.
  case tooLong(Int, path: String)
  /// Other users control the directory.
  case exposed(DirectoryExposure, path: String)
  /// Another daemon uses it; the pid if it is known.
  case inUse(path: String, pid: Int32?)
  /// The image that must replace what the state was read from cannot be written, for this reason.
  case withoutImage(String, path: String)
  /// No state directory is configured.
  case unknown

  var description: String {
    switch self {
    case .system(let error, let path) where error.code == EISDIR:
      "\(error); \(StorageError(error, path: path).remedy)"
    case .system(let error, let path):
      "\(error); make \(path) a directory that this user may write, name another with --state, "
        + "or keep nothing with --durability memory"
    case .tooLong(let bytes, let path):
      "cannot use state directory \(path): its path has \(bytes) bytes, more than \(StateFile.maxDirectoryBytes); "
        + "name another directory with --state"
    case .exposed(.owned(let uid), let path):
      "cannot use state directory \(path): it belongs to uid \(uid); change its owner to root or uid \(ProcessIdentity.uid), "
        + "or name another directory with --state"
    case .exposed(.writable(let mode), let path):
      "cannot use state directory \(path): its mode \(String(mode, radix: 8)) lets other users write to it; "
        + "run chmod go-w, or name another directory with --state"
    case .inUse(let path, let pid):
      "another feedd (\(pid.map { "pid \($0)" } ?? "pid unknown")) uses \(path); stop it, or name another directory with --state"
    case .withoutImage(let reason, let path): "cannot start with \(path) before an image of it is written: \(reason)"
    case .unknown:
      "there is no place for the state: none of STATE_DIRECTORY, XDG_STATE_HOME and HOME is set; "
        + "name a directory with --state, or keep nothing with --durability memory"
    }
  }
}

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
        Engine(limits: options.limits, identity: identity, seed: seed, now: Instant(nanoseconds: 0))
      }
      try write(lines(of: found, directory, target.catalog), to: StandardStreams.output)
      return 0
    } catch {
      try? write(["feedd: \(error)"], to: StandardStreams.error)
      return 1
    }
  }

  private static func lines(of found: StateCheck.Findings, _ directory: String, _ catalog: Catalog) -> [String] {
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
      notify.reportRecovery(report.text)
    }
    defer { reporter.stop() }
    let found = try storage.recover(into: engine, reporter.note)
    reporter.stop()
    engine.endReplay(limits)
    var failure: String?
    storage.report = { isFailure, message in
      log.write(isFailure ? .error : .notice, message)
      failure = message
    }
    try PrivateDirectory.withPrivateFiles { () throws(StorageError) in try storage.start(limits) }
    // Each start from the present image would give these rows another revision, and their watchers a snapshot. An image that is overdue
    // is the requested one.
    if engine.catalog.hasReplacedRows { storage.requestImage() }
    if storage.isImageOverdue {
      var nextReport: UInt64 = 0
      let isWritten = storage.writeImage(executed: 0, { engine.catalog.makeImage() }) {
        if MonotonicClock.now >= nextReport {
          nextReport = MonotonicClock.now &+ 1_000_000_000
          notify.reportRecovery("recovering: writing an image")
        }
        return true
      }
      if storage.mustWriteImage && !isWritten {
        throw StateDirectoryError.withoutImage(failure ?? "there is no segment to continue it", path: storage.directory)
      }
    }
    if let news = storage.beginning.news { log.write(.warning, "\(storage.directory): \(news)") }
    let recovered = recovered(engine.catalog, elements: found.elements, batches: found.batches, since: start)
    log.write(.notice, "\(storage.directory): \(recovered)")
    return found
  }

  /// What a recovery that began at a time of `MonotonicClock` has found, for the log.
  static func recovered(_ catalog: Catalog, elements: Int, batches: Int, since start: UInt64) -> String {
    "revision \(grouped(catalog.revision)), \(counted(catalog.feeds.count, "feed")), from an image of "
      + "\(counted(elements, "element")) and \(counted(batches, "batch", plural: "batches")) of the log, in "
      + "\(grouped((MonotonicClock.now - start) / 1_000_000)) ms"
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
