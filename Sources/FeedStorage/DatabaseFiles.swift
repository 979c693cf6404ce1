import FeedSystem
import Glibc

/// Detects that other programs removed, replaced, shortened or overwrote the database's files while they are in use.
///
/// SQLite does not read the WAL again before it appends to it, so a commit to such files would succeed and be lost. The
/// owner calls `problem` before each commit and `didCommit` after it. A WAL that was shortened in between has regained its
/// length with the commit, but not the end of the commit before.
///
/// Invariant: `end` holds the last bytes of frame `pages` of the WAL, as they were after the last commit.
struct DatabaseFiles {
  enum Problem: Equatable {
    /// A file was removed or replaced.
    case vanished(String)
    /// The database file is shorter than it was.
    case shortenedDatabase(size: Int)
    /// The WAL is shorter than it was.
    case shortenedLog(size: Int)
    /// The WAL has its length, but not its content.
    case overwrittenLog
  }

  private struct Status {
    let device: UInt
    let node: UInt
    let size: Int

    init?(_ path: String) {
      var status = stat()
      guard stat(path, &status) == 0 else { return nil }
      device = UInt(status.st_dev)
      node = UInt(status.st_ino)
      size = Int(status.st_size)
    }

    func isSameFile(as other: Status) -> Bool { device == other.device && node == other.node }
  }

  /// The last 16 bytes of a frame. On a page of a table, they belong to the first row of the page.
  private typealias End = (UInt64, UInt64)

  private let databasePath: String
  private let logPath: String
  private let database: Status?
  private let log: Status?
  /// The WAL. SQLite has no locks on it that closing this descriptor would release.
  private let logFile: InputFile?
  private let pageSize: Int
  private static let headerBytes = 32
  private static let frameHeaderBytes = 24
  /// The greatest size of the database file so far.
  private var databaseSize: Int
  /// The least size of the WAL with all its commits.
  private var logSize: Int
  /// The number of WAL pages after the last commit; 0 before the first.
  private var pages = 0
  private var end: End?
  /// The random numbers in the header of the WAL. SQLite changes them when it begins the WAL anew.
  private var salts: UInt64 = 0

  /// - Parameters:
  ///   - path: the path of the database file, which SQLite has open with its WAL.
  ///   - pageSize: the page size of the database, in bytes.
  init(_ path: String, pageSize: Int) {
    databasePath = path
    logPath = path + "-wal"
    database = Status(databasePath)
    log = Status(logPath)
    logFile = try? InputFile(logPath)
    databaseSize = database?.size ?? 0
    // How much of the WAL is in use is known after the first commit.
    logSize = log?.size ?? 0
    self.pageSize = pageSize
  }

  /// Checks the files before a commit; nil if they are unchanged or have grown. Two system calls.
  mutating func problem() -> Problem? {
    guard let now = Status(databasePath) else { return .vanished("the database file was removed") }
    guard let database, now.isSameFile(as: database) else {
      return .vanished("the database file was replaced by another")
    }
    guard let wal = Status(logPath) else { return .vanished("the database's log was removed") }
    guard let log, wal.isSameFile(as: log) else { return .vanished("the database's log was replaced by another") }
    if now.size < databaseSize { return .shortenedDatabase(size: now.size) }
    databaseSize = now.size
    return wal.size < logSize ? .shortenedLog(size: wal.size) : nil
  }

  /// Accepts that the database file became shorter if it still has room for this many pages. Returns whether it has.
  mutating func acceptShorterDatabase(pages: Int64?, size: Int) -> Bool {
    guard let pages, Int(pages) * pageSize <= size else { return false }
    databaseSize = size
    return true
  }

  /// Checks that the commit before still is in the WAL, and notes the end of a new one. Two system calls.
  /// - Parameter pages: the number of WAL pages after the commit.
  /// - Returns: the problem if the commit before is not there; the new one is lost too.
  mutating func didCommit(pages: Int) -> Problem? {
    let isBegunAnew = pages < self.pages
    if let end, !isBegunAnew, let found = read(endOf: self.pages), found != end, !salts(areOther: salts) {
      return .overwrittenLog
    }
    if end == nil || isBegunAnew { salts = readSalts() ?? 0 }
    self.pages = pages
    end = read(endOf: pages)
    if pages > 0 { logSize = endOffset(of: pages) }
    return nil
  }

  /// Records that a checkpoint emptied the WAL.
  mutating func logWasEmptied() {
    pages = 0
    end = nil
    logSize = 0
  }

  /// Whether a WAL of a size has room for so many pages.
  func hasRoom(for pages: Int, inLogOf size: Int) -> Bool { pages == 0 || size >= endOffset(of: pages) }

  /// Whether SQLite began the WAL anew since these salts were read: another program may have moved its pages.
  private mutating func salts(areOther former: UInt64) -> Bool {
    guard let found = readSalts(), found != former else { return false }
    salts = found
    return true
  }

  private func endOffset(of page: Int) -> Int { Self.headerBytes + page * (Self.frameHeaderBytes + pageSize) }

  private func read(endOf page: Int) -> End? {
    var end: End = (0, 0)
    guard page > 0, let logFile else { return nil }
    let isRead = withUnsafeMutableBytes(of: &end) { logFile.read($0, at: endOffset(of: page) - $0.count) }
    return isRead ? end : nil
  }

  /// The salts in the header of the WAL; nil if it has no header.
  private func readSalts() -> UInt64? {
    var header: (magic: UInt32, version: UInt32, pageSize: UInt32, sequence: UInt32, salts: UInt64) = (0, 0, 0, 0, 0)
    guard let logFile, withUnsafeMutableBytes(of: &header, { logFile.read($0, at: 0) }) else { return nil }
    return UInt32(bigEndian: header.magic) & ~1 == 0x377f_0682 ? header.salts : nil
  }
}
