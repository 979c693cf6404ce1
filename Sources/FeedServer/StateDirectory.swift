import FeedStorage
import FeedSystem

/// The directory in which one daemon keeps its state, locked against every other.
struct StateDirectory: ~Copyable {
  let path: String
  private let lock: FileLock

  /// The database file in it.
  var file: String { Self.file(in: path) }

  static func file(in directory: String) -> String { "\(directory)/\(StateFile.name)" }

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
