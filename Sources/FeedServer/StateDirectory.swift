import FeedEngine
import FeedJSON
import FeedModel
import FeedStorage
import FeedSystem

/// The directory with the state of one daemon, locked against other daemons.
///
/// The directory itself is locked, so that removing the lock file does not admit a second daemon. The lock file beside
/// the database names the process, and excludes daemons that lock only this file.
struct StateDirectory: ~Copyable {
  let path: String
  private let lock: DirectoryLock
  private let file: FileLock

  /// Creates the directory if it is missing, for this user only, and locks it. Refuses a directory that other users
  /// control: they could replace its files.
  static func lock(_ path: String) throws(StateDirectoryError) -> StateDirectory {
    let lockPath = lockPath(path)
    var exposure: DirectoryExposure?
    do throws(SystemError) {
      try PrivateDirectory.make(path)
      if let lock = try DirectoryLock.acquire(path) {
        exposure = try lock.exposure(to: ProcessIdentity.uid)
        if exposure == nil, let file = try FileLock.acquire(lockPath) {
          return StateDirectory(path: path, lock: lock, file: file)
        }
      }
    } catch {
      throw .system(error, path: path)
    }
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
  /// Other users control the directory.
  case exposed(DirectoryExposure, path: String)
  /// Another daemon uses it; the pid if it is known.
  case inUse(path: String, pid: Int32?)
  /// No state directory is configured.
  case unknown

  var description: String {
    switch self {
    case .system(let error, let path):
      "\(error); make \(path) a directory that this user may write, name another with --state, "
        + "or keep nothing with --durability memory"
    case .exposed(.owned(let uid), let path):
      "cannot use state directory \(path): it belongs to uid \(uid); change its owner to root or uid \(ProcessIdentity.uid), "
        + "or name another directory with --state"
    case .exposed(.writable(let mode), let path):
      "cannot use state directory \(path): its mode \(String(mode, radix: 8)) lets other users write to it; "
        + "run chmod go-w, or name another directory with --state"
    case .inUse(let path, let pid):
      "another feedd (\(pid.map { "pid \($0)" } ?? "pid unknown")) uses \(path); stop it, or name another directory with --state"
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
