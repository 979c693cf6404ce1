import FeedSQLite
import FeedSystem
import Synchronization

/// Keeps the write-ahead log short. A thread moves pages into the database file as they come; the log's own thread, between
/// two batches, moves only the few that came meanwhile, because the log can begin anew only when none is left.
///
/// The log's thread waits for the disk then. Passes of the other thread are shorter the sooner they follow each other, so
/// frequent passes leave few pages.
final class Checkpoints {
  /// Pages of log below which nothing is done.
  private static let ease = 1024
  /// Pages of log above which it should begin anew.
  private static let enough = 8192
  /// Pages that the log's thread moves without hesitation.
  private static let few = 96
  /// Pages of log at which the log's thread moves all that is left: the disk is slower than the writer.
  private static let tooMany = 65_536
  /// Milliseconds that the writer waits for a lock otherwise.
  static let busyTimeout: Int32 = 2000

  private let writer: Database
  private let logPages: UnsafeMutablePointer<Int32>
  private let thread: CheckpointThread
  /// Pages of log after the last commit that was looked at.
  private var lastPages: Int32 = 0
  /// Pages of log before which the writer does not try again: another program reads an older state.
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

  /// Pages in the log after the last commit; 0 before the first.
  var pages: Int { Int(logPages.pointee) }

  /// Whether the log is about to begin anew, which it can the sooner the less is written: work that can wait should wait for
  /// the thread's pass.
  var wantsPause: Bool { lastPages > Self.enough && lastPages < Self.tooMany && !thread.isIdle }

  /// Whether the next commit may begin the log anew, whose new header SQLite syncs.
  var isLogAboutToBeginAnew: Bool { thread.moved >= Int(logPages.pointee) && logPages.pointee > 0 }

  private enum Action {
    case none
    /// A pass of the thread.
    case wake
    /// Moving what is left here.
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

  /// Whether `maintain` has something to do.
  var isDue: Bool { action != .none }

  /// Notes the length of the log after a commit. O(1).
  func didCommit() {
    let pages = logPages.pointee
    if pages < lastPages {
      writerResumesAt = 0
      thread.logBeganAnew()
    }
    lastPages = pages
  }

  /// Moves pages, or has them moved, if the log is long. May wait for the disk.
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
    // A failure only leaves a longer log; the next commit reports a broken disk.
    let progress = try? writer.checkpoint(.passive)
    if let progress, progress.moved == progress.pages {
      thread.didMove(progress.moved)
      return
    }
    writerResumesAt = pages &+ Int32(Self.enough)
  }

  /// Returns the log's space to the file system: moves its content into the database file, which has most of it already, and
  /// truncates it. Returns whether the log had anything and is empty now.
  func makeRoom() -> Bool {
    // Waits for no reader: as long as another program reads, the log stays.
    writer.setBusyTimeout(milliseconds: 0)
    defer { writer.setBusyTimeout(milliseconds: Self.busyTimeout) }
    guard let progress = try? writer.checkpoint(.truncate), progress.moved == progress.pages else { return false }
    let had = logPages.pointee > 0
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

/// A thread that makes a checkpoint whenever it is woken, on a connection of its own.
///
/// Shared properties are atomic; the connection belongs to this thread alone.
private final class CheckpointThread: Sendable {
  private let path: String
  private let vfs: String?
  private let isWorking = Atomic<Bool>(false)
  private let movedPages = Atomic<Int>(0)
  /// How often the log began anew. A pass that was overtaken by that has moved nothing of the present log.
  private let logNumber = Atomic<Int>(0)
  private let isEnding = Atomic<Bool>(false)
  private let thread = Mutex<Thread?>(nil)
  private let wakeUp: WakeUp?

  init(path: String, vfs: String?) {
    self.path = path
    self.vfs = vfs
    wakeUp = try? WakeUp()
  }

  /// Starts the thread, which keeps this object alive. Without it the writer moves all pages itself.
  func start() {
    guard let wakeUp else { return }
    let started = try? Thread("checkpoint") { self.run(wakeUp) }
    thread.withLock { $0 = started }
  }

  /// Whether no pass is under way: `moved` is the result of the last one.
  var isIdle: Bool { !isWorking.load(ordering: .acquiring) }

  /// Pages of the log that are in the database file.
  var moved: Int { movedPages.load(ordering: .relaxed) }

  /// Another thread moved pages.
  func didMove(_ pages: Int) { movedPages.store(pages, ordering: .relaxed) }

  /// The log began anew: nothing of it has been moved.
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

  /// Ends the thread and waits for it.
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
      // A failure is retried with the next pass; the writer meets the same disk and reports it.
      if let progress = try? database?.checkpoint(.passive) {
        // Otherwise the writer would wait for all of it when it moves the last pages.
        database?.syncFile()
        if log == logNumber.load(ordering: .relaxed) { movedPages.store(progress.moved, ordering: .relaxed) }
      }
      isWorking.store(false, ordering: .releasing)
    }
  }
}
