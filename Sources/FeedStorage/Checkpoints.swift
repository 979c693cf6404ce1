import FeedJSON
import FeedSQLite
import FeedSystem
import Synchronization

/// Keeps the write-ahead log (WAL) short. A thread moves pages into the database file in passes. Between two batches,
/// the writer moves the few remaining pages, because the WAL restarts only when no pages are left.
///
/// The writer waits for the disk during this. A pass is shorter the sooner it follows the previous one, so frequent
/// passes leave few pages.
final class Checkpoints {
  /// The number of WAL pages below which nothing is done.
  private static let ease = 1024
  /// The number of WAL pages above which the WAL should restart.
  private static let enough = 8192
  /// The number of remaining pages that the writer moves at any time.
  private static let few = 96
  /// The number of WAL pages at which the writer moves all remaining pages, because the disk is slower than the writer.
  private static let tooMany = 65_536
  /// Milliseconds that the writer waits for a lock, except in `makeRoom`.
  static let busyTimeout: Int32 = 2000

  private let writer: Database
  private let logPages: UnsafeMutablePointer<Int32>
  private let thread: CheckpointThread
  /// The number of WAL pages after the last observed commit.
  private var lastPages: Int32 = 0
  /// The number of WAL pages below which the writer does not try again, because another program reads an older state.
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

  /// The number of WAL pages after the last commit; 0 before the first.
  var pages: Int { Int(logPages.pointee) }

  /// Whether the WAL is about to restart. Deferrable work should wait for the pass of the thread: the fewer pages are
  /// written, the sooner the WAL restarts.
  var wantsPause: Bool { lastPages > Self.enough && lastPages < Self.tooMany && !thread.isIdle }

  /// Whether the next commit may restart the WAL. SQLite syncs the new header.
  var isLogAboutToBeginAnew: Bool { thread.moved >= Int(logPages.pointee) && logPages.pointee > 0 }

  private enum Action {
    case none
    /// Starts a pass of the thread.
    case wake
    /// Moves the remaining pages on the calling thread.
    case finish
  }

  private var action: Action {
    guard lastPages > Self.ease, thread.isIdle else { return .none }
    let left = Int(lastPages) - thread.moved
    if lastPages > Self.tooMany || (lastPages > Self.enough && left <= Self.few) {
      return lastPages < writerResumesAt ? .none : .finish
    }
    return left > Self.few ? .wake : .none
  }

  /// Whether `maintain` has work to do.
  var isDue: Bool { action != .none }

  /// Records the length of the WAL after a commit. O(1).
  func didCommit() {
    let pages = logPages.pointee
    if pages < lastPages {
      writerResumesAt = 0
      thread.logBeganAnew()
    }
    lastPages = pages
  }

  /// Moves pages, or starts a pass, if the WAL is long. May wait for the disk.
  func maintain() {
    didCommit()
    switch action {
    case .none: break
    case .wake: thread.wake()
    case .finish: finish(lastPages)
    }
  }

  private func finish(_ pages: Int32) {
    if pages < writerResumesAt { return }
    // A failure only leaves a longer WAL. The next commit reports a broken disk.
    let progress = try? writer.checkpoint(.passive)
    if let progress, progress.moved == progress.pages {
      thread.didMove(progress.moved)
      return
    }
    writerResumesAt = pages &+ Int32(Self.enough)
  }

  /// Returns the space of the WAL to the file system: moves its remaining pages into the database file and truncates
  /// it. Returns whether the WAL had pages and is now empty.
  func makeRoom() -> Bool {
    let had = logPages.pointee > 0
    return emptyLog() && had
  }

  /// Moves the remaining pages of the WAL into the database file and truncates it. Returns whether the WAL is now empty.
  func emptyLog() -> Bool {
    // Does not wait for readers: while another program reads, the WAL stays.
    writer.setBusyTimeout(milliseconds: 0)
    defer { writer.setBusyTimeout(milliseconds: Self.busyTimeout) }
    guard let progress = try? writer.checkpoint(.truncate), progress.moved == progress.pages else { return false }
    logPages.pointee = 0
    lastPages = 0
    writerResumesAt = 0
    thread.logBeganAnew()
    return true
  }

  /// Ends the thread and waits for its end.
  func stop() {
    if isStopped { return }
    isStopped = true
    thread.stop()
  }
}

/// A thread that runs a checkpoint whenever it is woken, on its own connection.
///
/// Shared properties are atomic; the connection belongs to this thread alone.
private final class CheckpointThread: Sendable {
  private let path: String
  private let vfs: String?
  private let isWorking = Atomic<Bool>(false)
  private let movedPages = Atomic<Int>(0)
  /// The number of restarts of the WAL. If it changes during a pass, the pass moved no pages of the current WAL.
  private let logNumber = Atomic<Int>(0)
  private let isEnding = Atomic<Bool>(false)
  private let thread = Guarded<Thread?>(nil)
  private let wakeUp: WakeUp?

  init(path: String, vfs: String?) {
    self.path = path
    self.vfs = vfs
    wakeUp = try? WakeUp()
  }

  /// Starts the thread, which retains this object. If the thread cannot start, the writer moves all pages itself.
  func start() {
    guard let wakeUp else { return }
    let started = try? Thread("checkpoint") { self.run(wakeUp) }
    thread.withLock { $0 = started }
  }

  /// Whether no pass is running. `moved` is then the result of the last pass.
  var isIdle: Bool { !isWorking.load(ordering: .acquiring) }

  /// The number of WAL pages that are in the database file.
  var moved: Int { movedPages.load(ordering: .relaxed) }

  /// Records that another thread moved pages.
  func didMove(_ pages: Int) { movedPages.store(pages, ordering: .relaxed) }

  /// Records that the WAL restarted: none of its pages has been moved.
  func logBeganAnew() {
    logNumber.add(1, ordering: .relaxed)
    movedPages.store(0, ordering: .relaxed)
  }

  /// Starts a pass.
  func wake() {
    if thread.withLock({ $0 == nil }) { return }
    isWorking.store(true, ordering: .releasing)
    wakeUp?.signal()
  }

  /// Ends the thread and waits for its end.
  func stop() {
    guard let running = thread.withLock({ $0.take() }) else { return }
    isEnding.store(true, ordering: .releasing)
    wakeUp?.signal()
    running.join()
  }

  private func run(_ wakeUp: WakeUp) {
    var database: Database?
    while true {
      wakeUp.wait()
      if isEnding.load(ordering: .acquiring) { return }
      if database == nil {
        database = try? Database(path: path, access: .readWrite, vfs: vfs)
        database?.keepLogWhenClosing()
        try? database?.execute("PRAGMA synchronous = NORMAL")
      }
      let log = logNumber.load(ordering: .relaxed)
      // A failure is retried by the next pass. The writer uses the same disk and reports it.
      if let progress = try? database?.checkpoint(.passive) {
        // Without this sync, the writer would wait for all pages when it moves the last ones.
        database?.syncFile()
        if log == logNumber.load(ordering: .relaxed) { movedPages.store(progress.moved, ordering: .relaxed) }
      }
      isWorking.store(false, ordering: .releasing)
    }
  }
}
