import FeedStorage
import FeedSystem

/// The directory in which one daemon keeps its state, locked against every other.
struct StateDirectory: ~Copyable {
  let path: String
  private let lock: FileLock

  /// The database file in it.
  var file: String { Self.file(in: path) }

  static func file(in directory: String) -> String { "\(directory)/\(StateFile.name)" }

  /// The directory without `--state`: `$STATE_DIRECTORY` as systemd sets it (the first of several), for root
  /// `/var/lib/feedd`, else `$XDG_STATE_HOME/feedd` or `$HOME/.local/state/feedd`. nil when none of them can be told.
  static func standard(_ environment: Environment, uid: UInt32 = ProcessIdentity.uid) -> String? {
    if let first = environment.nonEmpty("STATE_DIRECTORY")?.split(separator: ":").first { return String(first) }
    if uid == 0 { return "/var/lib/feedd" }
    if let state = environment.nonEmpty("XDG_STATE_HOME"), state.hasPrefix("/") { return "\(state)/feedd" }
    return environment.nonEmpty("HOME").map { "\($0)/.local/state/feedd" }
  }

  /// Makes the directory if it is not there, for this user only, and locks it.
  static func take(_ path: String) throws(StateDirectoryError) -> StateDirectory {
    let lockPath = "\(path)/feedd.lock"
    do throws(SystemError) {
      try PrivateDirectory.make(path)
      if let lock = try FileLock.acquire(lockPath) { return StateDirectory(path: path, lock: lock) }
    } catch {
      throw .system(error, path: path)
    }
    throw .inUse(path: path, pid: FileLock.holder(lockPath))
  }

  private init(path: String, lock: consuming FileLock) {
    self.path = path
    self.lock = lock
  }
}
