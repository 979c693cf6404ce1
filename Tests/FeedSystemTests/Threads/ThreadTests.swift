import FeedSystem
import Glibc
import Synchronization
import Testing

@Suite("Threads and wake-ups")
struct ThreadTests {
  @Test("join waits for the end of the function, and may be called again")
  func join() throws {
    let count = Atomic<Int>(0)
    let go = try WakeUp()
    let thread = try Thread("test") {
      go.wait()
      count.add(1, ordering: .relaxed)
    }
    #expect(count.load(ordering: .relaxed) == 0)
    go.signal()
    thread.join()
    #expect(count.load(ordering: .relaxed) == 1)
    thread.join()
  }

  @Test("a thread runs on when its handle is discarded")
  func detached() throws {
    let (go, done) = (try WakeUp(), try WakeUp())
    try Thread("a name that is too long for the kernel") {
      go.wait()
      done.signal()
    }
    go.signal()
    done.wait()
  }

  @Test("signals are blocked on a new thread, and the mask of its creator is restored")
  func signals() throws {
    @Sendable func blocked() -> [Int32] {
      var set = sigset_t()
      pthread_sigmask(SIG_SETMASK, nil, &set)
      return [SIGTERM, SIGINT, SIGHUP, SIGUSR1].filter { sigismember(&set, $0) == 1 }
    }
    let before = blocked()
    let seen = Mutex<[Int32]>([])
    try Thread("test") { seen.withLock { $0 = blocked() } }.join()
    #expect(seen.withLock { $0 } == [SIGTERM, SIGINT, SIGHUP, SIGUSR1])
    #expect(blocked() == before)
  }

  @Test("several signals before a wait wake it once")
  func coalescing() throws {
    let wakeUp = try WakeUp()
    #expect(try Readiness.readable.wait(on: wakeUp.descriptor, timeout: .zero).isEmpty)
    wakeUp.signal()
    wakeUp.signal()
    #expect(try Readiness.readable.wait(on: wakeUp.descriptor, timeout: .zero) == .readable)
    wakeUp.wait()
    #expect(try Readiness.readable.wait(on: wakeUp.descriptor, timeout: .zero).isEmpty)
    wakeUp.clear()
  }
}
