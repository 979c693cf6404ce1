import FeedEngine
import FeedSystem
import Glibc

/// Runs long work of the engine in slices of a few milliseconds, on a stack of its own.
///
/// The work runs on a thread, but never at the same time as the caller: each waits while the other runs. So both may use the
/// same objects without locks. Invariant: at most one of the two threads is not waiting.
public final class SlicedWork: SliceRunner, @unchecked Sendable {
  /// Nanoseconds of a turn for the work.
  public static let standardSlice: UInt64 = 2_000_000

  private let name: String
  private let slice: UInt64
  public let isEager: Bool
  private var deadline: UInt64 = 0
  private let toWork = Semaphore()
  private let toCaller = Semaphore()
  private var thread: Thread?
  /// The work that has begun and not ended.
  private var work: (() -> Void)?
  private var isEnding = false

  /// - Parameters:
  ///   - name: the name of the thread, at most 15 bytes.
  ///   - slice: nanoseconds; with 0, work stops whenever it looks at the clock.
  ///   - isEager: whether each request that changes feeds is sliced as finely as possible.
  public init(_ name: String, slice: UInt64 = SlicedWork.standardSlice, isEager: Bool = false) {
    (self.name, self.slice, self.isEager) = (name, slice, isEager)
  }

  public func beginSlice() { deadline = MonotonicClock.now &+ slice }
  public var timeLeft: UInt64 {
    let now = MonotonicClock.now
    return now < deadline ? deadline &- now : 0
  }

  public func run(_ work: @escaping () -> Void) -> Bool {
    precondition(self.work == nil, "the work before has not ended")
    do {
      if thread == nil { thread = try Thread(name) { [self] in workInSlices() } }
    } catch {
      // No thread can be started now. Then the work holds up the others.
      work()
      return true
    }
    self.work = work
    return resume()
  }

  private func workInSlices() {
    while true {
      toWork.wait()
      if isEnding { return }
      work?()
      work = nil
      toCaller.signal()
    }
  }

  public func resume() -> Bool {
    precondition(work != nil, "there is no work to continue")
    toWork.signal()
    toCaller.wait()
    return work == nil
  }

  public func suspend() {
    // Work that has no thread of its own has nobody to continue it.
    if thread == nil { return }
    toCaller.signal()
    toWork.wait()
  }

  public func end() {
    precondition(work == nil, "the work has not ended")
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
