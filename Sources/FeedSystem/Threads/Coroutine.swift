import Glibc

/// A second stack for work that stops now and then, and goes on when the caller has time.
///
/// The work runs on a thread of its own, but never at the same time as the caller: each waits while the other runs. So
/// both may use the same objects without locks.
///
///     let coroutine = Coroutine("sorter")
///     var isOver = try coroutine.run { while sortSome() { coroutine.suspend() } }
///     while !isOver { serveOthers(); isOver = coroutine.resume() }
///
/// Invariant: at most one of the two threads is not waiting.
public final class Coroutine: @unchecked Sendable {
  private let name: String
  private let toWork = Semaphore()
  private let toCaller = Semaphore()
  private var thread: Thread?
  private var work: (() -> Void)?
  private var isEnding = false

  /// - Parameter name: the name of the thread, at most 15 bytes.
  public init(_ name: String) {
    self.name = name
  }

  /// Whether work has begun and not ended.
  public private(set) var isUnderWay = false

  /// Runs `work` until it ends or suspends itself. Returns whether it has ended.
  ///
  /// - Throws: if the thread cannot be started. The work has not begun then.
  public func run(_ work: @escaping () -> Void) throws(SystemError) -> Bool {
    precondition(!isUnderWay, "the work before has not ended")
    if thread == nil {
      thread = try Thread(name) { [self] in
        while true {
          toWork.wait()
          if isEnding { return }
          if let work = self.work { work() }
          self.work = nil
          isUnderWay = false
          toCaller.signal()
        }
      }
    }
    self.work = work
    isUnderWay = true
    return resume()
  }

  /// Continues the work. Returns whether it has ended.
  public func resume() -> Bool {
    precondition(isUnderWay, "there is no work to continue")
    toWork.signal()
    toCaller.wait()
    return !isUnderWay
  }

  /// Stops the work until `resume`. Called by the work.
  public func suspend() {
    toCaller.signal()
    toWork.wait()
  }

  /// Ends the thread. The work must have ended.
  public func end() {
    precondition(!isUnderWay, "the work has not ended")
    guard let thread else { return }
    isEnding = true
    toWork.signal()
    thread.join()
    self.thread = nil
    isEnding = false
  }
}

/// A counting semaphore between the threads of this process.
private final class Semaphore: @unchecked Sendable {
  private let handle = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

  init() {
    let result = sem_init(handle, 0, 0)
    assert(result == 0, "a semaphore with the value 0 can always be made")
  }

  deinit {
    sem_destroy(handle)
    handle.deallocate()
  }

  func signal() { sem_post(handle) }

  func wait() {
    while sem_wait(handle) != 0 { assert(errno == EINTR) }
  }
}
