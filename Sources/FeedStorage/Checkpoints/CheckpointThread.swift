import FeedSQLite
import Glibc
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
  private let thread = Atomic<UInt>(0)
  private nonisolated(unsafe) let signal: UnsafeMutablePointer<sem_t>

  init(path: String, vfs: String?) {
    self.path = path
    self.vfs = vfs
    signal = .allocate(capacity: 1)
    sem_init(signal, 0, 0)
  }

  deinit {
    sem_destroy(signal)
    signal.deallocate()
  }

  /// Starts the thread, which keeps this object alive. Without it the writer moves all pages itself.
  func start() {
    var number: pthread_t = 0
    let this = Unmanaged.passRetained(self)
    let result = pthread_create(
      &number, nil,
      { context in
        if let context { Unmanaged<CheckpointThread>.fromOpaque(context).takeRetainedValue().run() }
        return nil
      }, this.toOpaque())
    if result == 0 {
      thread.store(UInt(number), ordering: .relaxed)
    } else {
      this.release()
    }
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
    if thread.load(ordering: .relaxed) == 0 { return }
    isWorking.store(true, ordering: .releasing)
    sem_post(signal)
  }

  /// Ends the thread and waits for it.
  func stop() {
    let number = thread.exchange(0, ordering: .relaxed)
    if number == 0 { return }
    isEnding.store(true, ordering: .releasing)
    sem_post(signal)
    pthread_join(pthread_t(number), nil)
  }

  private func run() {
    var signals = sigset_t()
    sigfillset(&signals)
    pthread_sigmask(SIG_BLOCK, &signals, nil)
    var database: Database?
    while true {
      while sem_wait(signal) != 0 {}
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
