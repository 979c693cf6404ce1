import Glibc

/// Whether the database files are still where they were opened: a write to a file that was removed or replaced would
/// succeed and be lost.
struct FilePlace {
  private let database: String
  private let log: String
  private let identity: Identity?

  private struct Identity: Equatable {
    let device: UInt
    let node: UInt
  }

  init(_ path: String) {
    database = path
    log = path + "-wal"
    identity = Self.identity(path)
  }

  /// What is wrong; nil when the files are in their place. Two system calls.
  var problem: String? {
    guard let now = Self.identity(database) else { return "the database file is not there any more" }
    guard now == identity else { return "another file has taken the place of the database file" }
    guard Self.identity(log) != nil else { return "the log of the database is not there any more" }
    return nil
  }

  private static func identity(_ path: String) -> Identity? {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    return Identity(device: UInt(status.st_dev), node: UInt(status.st_ino))
  }
}
