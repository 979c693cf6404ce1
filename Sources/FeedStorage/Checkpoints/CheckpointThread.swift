import FeedSQLite
import FeedSystem
import Synchronization

/// A thread that checkpoints whenever it is woken, on a connection of its own.
///
/// What both threads touch is atomic; the connection belongs to this thread alone.
final class CheckpointThread: Sendable {
  private let path: String
  private let vfs: String?
  private let isWorking = Atomic<Bool>(false)
  private let movedPages = Atomic<Int>(0)
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

  /// Whether a pass is over: `moved` is its result.
  var isIdle: Bool { !isWorking.load(ordering: .acquiring) }

  /// Pages of the log that are in the database file.
  var moved: Int { movedPages.load(ordering: .relaxed) }

  /// The log began anew: nothing of it has been moved.
  func logBeganAnew() {
    movedPages.store(0, ordering: .relaxed)
  }

  /// Has the thread make a pass.
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
      // What fails here is tried again with the next pass; the writer meets the same disk and says so.
      if let progress = try? database?.checkpoint(.passive) {
        // Otherwise the writer would wait for all of it when it moves the last pages.
        database?.syncFile()
        movedPages.store(progress.moved, ordering: .relaxed)
      }
      isWorking.store(false, ordering: .releasing)
    }
  }
}
