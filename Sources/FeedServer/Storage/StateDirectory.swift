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
