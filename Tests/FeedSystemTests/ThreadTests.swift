import FeedSystem
import Foundation
import Glibc
import Synchronization
import TestSupport
import Testing

@Suite("Threads and wake-ups")
struct ThreadTests {
  @Test("join waits for the thread and can be called again")
  func join() throws {
    let count = Atomic<Int>(0)
    let go = try WakeUp()
    let thread = try Thread("test") {
      go.wait()
      count.add(1, ordering: .relaxed)
    }
    expectEqual(count.load(ordering: .relaxed), 0)
    go.signal()
    thread.join()
    expectEqual(count.load(ordering: .relaxed), 1)
    thread.join()
  }

  @Test("a thread continues after its handle is discarded")
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
    expectEqual(seen.withLock { $0 }, [SIGTERM, SIGINT, SIGHUP, SIGUSR1])
    expectEqual(blocked(), before)
  }

  @Test("several signals before a wait wake it once")
  func coalescing() throws {
    let wakeUp = try WakeUp()
    try expect(Readiness.readable.wait(on: wakeUp.descriptor, timeout: .zero).isEmpty)
    wakeUp.signal()
    wakeUp.signal()
    try expectEqual(Readiness.readable.wait(on: wakeUp.descriptor, timeout: .zero), .readable)
    wakeUp.wait()
    try expect(Readiness.readable.wait(on: wakeUp.descriptor, timeout: .zero).isEmpty)
    wakeUp.clear()
  }
}

@Suite("Clocks")
struct ClockTests {
  @Test func timeoutsAreRoundedUp() {
    let first = MonotonicClock.now
    expect(MonotonicClock.now >= first)
    expectEqual(MonotonicClock.milliseconds(until: first), 0)
    // A wait with this timeout does not end before the deadline.
    let hour: UInt64 = 3_600_000_000_000
    let deadline = MonotonicClock.now + hour - 1
    let wait = MonotonicClock.milliseconds(until: deadline)
    expect(UInt64(wait) * 1_000_000 >= deadline - MonotonicClock.now && wait <= 3_600_000)
    expectEqual(MonotonicClock.milliseconds(until: .max), .max)
    expect(WallClock.now > 1_600_000_000_000_000_000)
  }

  @Test(
    arguments: [
      (Duration.zero, 0), (.nanoseconds(1), 1), (.milliseconds(1500), 1_500_000_000), (.seconds(-1), 0),
      (.seconds(Int64.max), 9_000_000_000_000_000_000),
    ] as [(Duration, UInt64)])
  func durationsAreClamped(time: Duration, nanoseconds: UInt64) {
    expectEqual(time.clampedNanoseconds, nanoseconds)
  }
}

/// A rule for all sources that the compiler cannot check.
@Suite("Single callers of system calls")
struct SystemCallPlacesTests {
  @Test(
    "only one file calls each of these functions",
    arguments: [
      ("pthread_create", "FeedSystem/Threads/Thread.swift"), ("clock_gettime", "FeedSystem/Threads/Thread.swift"),
      ("eventfd(", "FeedSystem/Threads/Thread.swift"),
    ])
  func place(call: String, file: String) throws {
    let sources = "\(BuildProducts.packageFolder)/Sources"
    let names = try require(FileManager.default.enumerator(atPath: sources)).compactMap { $0 as? String }
    let users = try names.filter { name in
      guard name.hasSuffix(".swift") || name.hasSuffix(".c") else { return false }
      return try String(contentsOfFile: "\(sources)/\(name)", encoding: .utf8).contains(call)
    }
    expectEqual(users, [file])
  }
}
