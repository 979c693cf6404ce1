import FeedSystem

/// Whether the database files are still where they were opened: a write to a file that was removed or replaced would
/// succeed and be lost.
struct FilePlace {
  private let database: String
  private let log: String
  private let identity: FileIdentity?

  init(_ path: String) {
    database = path
    log = path + "-wal"
    identity = try? FileIdentity(following: path)
  }

  /// What is wrong; nil when the files are in their place. Two system calls.
  var problem: String? {
    guard let now = try? FileIdentity(following: database) else { return "the database file is not there any more" }
    guard now == identity else { return "another file has taken the place of the database file" }
    guard (try? FileIdentity(following: log)) != nil else { return "the log of the database is not there any more" }
    return nil
  }
}
