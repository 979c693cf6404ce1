import FeedSQLite

/// Keeps the write-ahead log short without holding up the loop: a thread moves pages into the database file as they come;
/// the writer itself, between two batches, only moves the few that came meanwhile, because the log can begin anew only when
/// none is left.
///
/// The writer waits for the disk then, for the pages it moves and for as many of the log. A pass of the thread is the shorter
/// the less has come since the one before, so passes that follow each other soon leave few pages.
final class Checkpoints {
  /// Pages of log that are left alone.
  private static let ease = 1024
  /// Pages of log from which on it should begin anew.
  private static let enough = 8192
  /// Pages that the writer moves without hesitation.
  private static let few = 96
  /// Pages of log at which the writer moves what is left, however much: the disk is slower than the writer.
  private static let tooMany = 65_536
  /// Milliseconds that the writer waits for a lock otherwise.
  static let busyTimeout: Int32 = 2000

  private let writer: Database
  private let logPages: UnsafeMutablePointer<Int32>
  private let thread: CheckpointThread
  /// Pages of log after the last commit that was looked at.
  private var lastPages: Int32 = 0
  /// Pages of log before which the writer does not try again: somebody reads an older state.
  private var writerResumesAt: Int32 = 0
  private var isStopped = false

  init(_ writer: Database, path: String, vfs: String?) throws(SQLiteError) {
    self.writer = writer
    logPages = .allocate(capacity: 1)
    logPages.initialize(to: 0)
    thread = CheckpointThread(path: path, vfs: vfs)
    writer.reportLog(to: logPages)
    thread.start()
  }

  deinit {
    stop()
    writer.endReportingLog()
    logPages.deallocate()
  }

  /// Whether the log is about to begin anew, which it can the sooner the less is written: what need not be written now should
  /// wait for the thread's pass.
  var wantsPause: Bool { lastPages > Self.enough && lastPages < Self.tooMany && !thread.isIdle }

  /// A commit of the writer is over.
  func didCommit() {
    let pages = logPages.pointee
    if pages < lastPages {
      writerResumesAt = 0
      thread.logBeganAnew()
    }
    lastPages = pages
    guard pages > Self.ease, thread.isIdle else { return }
    let left = Int(pages) - thread.moved
    if pages > Self.enough && left <= Self.few || pages > Self.tooMany {
      finish(pages)
    } else if left > Self.few {
      thread.wake()
    }
  }

  private func finish(_ pages: Int32) {
    if pages < writerResumesAt { return }
    // A failure costs nothing but a longer log; the next commit tells if the disk is at fault.
    let progress = try? writer.checkpoint(.passive)
    if let progress, progress.moved == progress.pages { return }
    writerResumesAt = pages &+ Int32(Self.enough)
  }

  /// Gives the file system the room back that the log takes: what it has is moved into the database file, which holds most of
  /// it already, and the log is cut off. Returns whether the log had anything and is empty now.
  func makeRoom() -> Bool {
    // The loop waits for nobody: whoever reads meanwhile has the log for now.
    writer.setBusyTimeout(milliseconds: 0)
    defer { writer.setBusyTimeout(milliseconds: Self.busyTimeout) }
    guard let progress = try? writer.checkpoint(.truncate), progress.moved == progress.pages else { return false }
    let had = lastPages > 0
    logPages.pointee = 0
    lastPages = 0
    writerResumesAt = 0
    thread.logBeganAnew()
    return had
  }

  /// Ends the thread and waits for it.
  func stop() {
    if isStopped { return }
    isStopped = true
    thread.stop()
  }
}
