import FeedSQLite

/// Keeps the write-ahead log short without holding up the loop: a thread moves pages into the database file as they come;
/// the writer itself, between two batches, only moves the few that came meanwhile, because the log can begin anew only when
/// none is left.
final class Checkpoints {
  /// Pages of log that are left alone.
  private static let ease = 1024
  /// Pages of log from which on it should begin anew.
  private static let enough = 8192
  /// Pages that the writer moves without hesitation.
  private static let few = 256
  /// Passes of the thread after which the writer moves what is left, however much.
  private static let patience = 4

  private let writer: Database
  private let logPages: UnsafeMutablePointer<Int32>
  private let thread: CheckpointThread
  /// Pages of log after the last commit that was looked at.
  private var lastPages: Int32 = 0
  /// Passes of the thread since the log began.
  private var passes = 0
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

  /// A commit of the writer is over.
  func didCommit() {
    let pages = logPages.pointee
    if pages < lastPages {
      passes = 0
      writerResumesAt = 0
      thread.logBeganAnew()
    }
    lastPages = pages
    guard pages > Self.ease, thread.isIdle else { return }
    let left = Int(pages) - thread.moved
    if pages > Self.enough && (left <= Self.few || passes >= Self.patience) {
      finish(pages)
    } else if left > Self.few {
      passes += 1
      thread.wake()
    }
  }

  private func finish(_ pages: Int32) {
    if pages < writerResumesAt { return }
    passes = 0
    // A failure costs nothing but a longer log; the next commit tells if the disk is at fault.
    let progress = try? writer.checkpoint(.passive)
    if let progress, progress.moved == progress.pages { return }
    writerResumesAt = pages &+ Int32(Self.enough)
  }

  /// Ends the thread and waits for it.
  func stop() {
    if isStopped { return }
    isStopped = true
    thread.stop()
  }
}
