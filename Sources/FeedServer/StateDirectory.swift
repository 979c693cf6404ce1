import FeedStorage
import FeedSystem

/// The directory in which one daemon keeps its state, locked against every other.
///
/// The directory itself is locked: removing the lock file does not let a second daemon in. The file beside the database only
/// names the process, and keeps out daemons that lock nothing else.
struct StateDirectory: ~Copyable {
  let path: String
  private let lock: DirectoryLock
  private let file: FileLock

  /// The database file in it.
  var database: String { Self.database(in: path) }

  static func database(in directory: String) -> String { "\(directory)/\(StateFile.name)" }

  /// Makes the directory if it is missing, for this user only, and locks it.
  static func take(_ path: String) throws(StateDirectoryError) -> StateDirectory {
    let lockPath = lockPath(path)
    do throws(SystemError) {
      try PrivateDirectory.make(path)
      if let lock = try DirectoryLock.acquire(path), let file = try FileLock.acquire(lockPath) {
        return StateDirectory(path: path, lock: lock, file: file)
      }
    } catch {
      throw .system(error, path: path)
    }
    throw .inUse(path: path, pid: FileLock.holder(lockPath))
  }

  private static func lockPath(_ path: String) -> String { "\(path)/feedd.lock" }

  /// Removes the lock file of a directory. Other daemons stay out until the process ends: the directory itself is locked.
  static func removeLockFile(_ path: String) { FileLock.remove(lockPath(path)) }

  private init(path: String, lock: consuming DirectoryLock, file: consuming FileLock) {
    self.path = path
    self.lock = lock
    self.file = file
  }
}

/// Why the daemon cannot keep its state where it was told to.
enum StateDirectoryError: Error, Equatable, CustomStringConvertible {
  /// The directory cannot be made or locked.
  case system(SystemError, path: String)
  /// Another daemon has it; the pid when it is known.
  case inUse(path: String, pid: Int32?)
  /// Nothing says where the state should be kept.
  case unknown

  var description: String {
    switch self {
    case .system(let error, let path):
      "\(error); make \(path) a directory that this user may write, name another with --state, "
        + "or keep nothing with --durability memory"
    case .inUse(let path, let pid):
      "another feedd (\(pid.map { "pid \($0)" } ?? "pid unknown")) uses \(path); stop it, or name another directory with --state"
    case .unknown:
      "there is no place for the state: none of STATE_DIRECTORY, XDG_STATE_HOME and HOME is set; "
        + "name a directory with --state, or keep nothing with --durability memory"
    }
  }
}
