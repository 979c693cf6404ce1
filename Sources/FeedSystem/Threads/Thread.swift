import CLinux
import FeedJSON
import Glibc
import Synchronization

/// A thread that runs one function to its end.
///
/// All signals are blocked on it, so that they reach the thread that handles them. Call ``join()`` to wait for the end. A
/// thread whose handle is discarded runs on without anybody waiting for it.
public final class Thread: Sendable {
  private final class Start {
    let name: String
    let body: @Sendable () -> Void

    init(_ name: String, _ body: @escaping @Sendable () -> Void) { (self.name, self.body) = (name, body) }
  }

  private let number: pthread_t
  private let isJoined = Atomic<Bool>(false)

  /// Starts a thread that calls `body` and ends when it returns.
  /// - Parameter name: shown by `top -H` and debuggers; truncated to 15 bytes.
  @discardableResult
  public init(_ name: String, _ body: @escaping @Sendable () -> Void) throws(SystemError) {
    // A new thread inherits the mask of its creator, so no signal can arrive before the mask is set.
    var all = sigset_t()
    var before = sigset_t()
    sigfillset(&all)
    pthread_sigmask(SIG_SETMASK, &all, &before)
    defer { pthread_sigmask(SIG_SETMASK, &before, nil) }

    var number = pthread_t()
    let start = Unmanaged.passRetained(Start(name, body))
    let code = pthread_create(
      &number, nil,
      { context in
        guard let context else { return nil }
        let start = Unmanaged<Start>.fromOpaque(context).takeRetainedValue()
        clinux_name_thread(start.name)
        start.body()
        return nil
      }, start.toOpaque())
    guard code == 0 else {
      start.release()
      throw SystemError(code: code, operation: "start a thread")
    }
    self.number = number
  }

  /// How often another thread took the processor from the calling one. One system call.
  public static var involuntarySwitches: Int { clinux_involuntary_switches() }

  deinit { if !isJoined.load(ordering: .relaxed) { pthread_detach(number) } }

  /// Waits for the thread to end. A second call returns at once.
  public func join() {
    assert(pthread_equal(number, pthread_self()) == 0, "a thread cannot wait for its own end")
    if isJoined.exchange(true, ordering: .relaxed) { return }
    pthread_join(number, nil)
  }
}

/// A descriptor by which any thread wakes another one (eventfd).
///
/// The sleeping thread either polls ``descriptor`` and calls ``clear()``, or calls ``wait()``. Signals are not counted:
/// several that arrive before the thread wakes up are one. A signal sent before the wait begins is not lost.
public final class WakeUp: Sendable {
  private let handle: Descriptor

  public init() throws(SystemError) {
    handle = try Descriptor("create an event descriptor") { eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK)) }
  }

  /// The descriptor to poll for reading. It is readable from ``signal()`` until ``clear()``.
  public var descriptor: Int32 { handle.rawValue }

  /// Wakes the waiting thread, or the next one to wait.
  public func signal() {
    var one: UInt64 = 1
    // A counter at its maximum (EAGAIN) is readable already.
    _ = retryingInterrupts { Glibc.write(handle.rawValue, &one, MemoryLayout<UInt64>.size) }
  }

  /// Discards all signals sent so far. Never blocks.
  public func clear() {
    var count: UInt64 = 0
    _ = retryingInterrupts { Glibc.read(handle.rawValue, &count, MemoryLayout<UInt64>.size) }
  }

  /// Blocks until there is a signal, then discards all signals sent so far.
  public func wait() {
    _ = try? Readiness.readable.wait(on: handle.rawValue)
    clear()
  }
}

/// The clock for deadlines and durations: nanoseconds since an unspecified start. It never goes backwards, and stands still while the
/// machine is suspended.
public enum MonotonicClock {
  /// The present time in nanoseconds. Reading it takes a few tens of nanoseconds (vDSO).
  public static var now: UInt64 { nanoseconds(CLOCK_MONOTONIC) }

  /// Returns the timeout for `poll` or `epoll_wait`: the milliseconds until `deadline`, rounded up so that the wait does not
  /// end early. 0 if the deadline has passed; never negative.
  public static func milliseconds(until deadline: UInt64) -> Int32 { milliseconds(from: now, until: deadline) }

  /// Like the other function, for times of any clock.
  public static func milliseconds(from now: UInt64, until deadline: UInt64) -> Int32 {
    guard deadline > now else { return 0 }
    let (whole, rest) = (deadline - now).quotientAndRemainder(dividingBy: 1_000_000)
    return Int32(clamping: whole &+ (rest > 0 ? 1 : 0))
  }
}

/// The clock for ages: nanoseconds since an unspecified start. It never goes backwards, and advances while the machine is suspended.
public enum BootClock {
  /// The present time in nanoseconds.
  public static var now: UInt64 { nanoseconds(CLOCK_BOOTTIME) }
}

public enum WallClock {
  /// Nanoseconds since 1970-01-01 00:00 UTC. This clock can be set back.
  public static var now: UInt64 { nanoseconds(CLOCK_REALTIME) }
  /// The present time as RFC 3339 text in UTC with milliseconds: `2026-03-01T12:00:00.123Z`.
  public static var text: String { text(now) }

  /// Returns the text of a time in nanoseconds since 1970; see ``text``.
  public static func text(_ nanoseconds: UInt64) -> String {
    var seconds = time_t(nanoseconds / 1_000_000_000)
    var parts = tm()
    gmtime_r(&seconds, &parts)
    let date =
      "\(padded(parts.tm_year + 1900, to: 4))-\(padded(parts.tm_mon + 1, to: 2))-\(padded(parts.tm_mday, to: 2))"
    let clock = "\(padded(parts.tm_hour, to: 2)):\(padded(parts.tm_min, to: 2)):\(padded(parts.tm_sec, to: 2))"
    return "\(date)T\(clock).\(padded(nanoseconds / 1_000_000 % 1000, to: 3))Z"
  }
}

/// The processor time of this process, for measurements. It does not include other processes.
public enum ProcessorClock {
  /// Nanoseconds of processor time used so far.
  public static var now: UInt64 { nanoseconds(CLOCK_PROCESS_CPUTIME_ID) }
}

/// The delay before the next attempt, in nanoseconds: doubled after each failure, up to a maximum.
public struct Backoff: Equatable, Sendable {
  private let first: UInt64
  private let longest: UInt64
  private var upcoming: UInt64

  public init(first: UInt64, longest: UInt64) {
    (self.first, self.longest) = (first, longest)
    upcoming = first
  }

  /// Returns the delay before the next attempt.
  public mutating func next() -> UInt64 {
    defer { upcoming = min(2 &* upcoming, longest) }
    return upcoming
  }

  public mutating func reset() { upcoming = first }
}

private func nanoseconds(_ clock: clockid_t) -> UInt64 {
  var time = timespec()
  let result = clock_gettime(clock, &time)
  assert(result == 0, "cannot read clock \(clock)")
  return UInt64(truncatingIfNeeded: time.tv_sec) &* 1_000_000_000 &+ UInt64(truncatingIfNeeded: time.tv_nsec)
}

extension Duration {
  /// Whole nanoseconds, clamped to the range from 0 to about 292 years.
  public var clampedNanoseconds: UInt64 {
    let (seconds, attoseconds) = components
    guard seconds >= 0, attoseconds >= 0 else { return 0 }
    guard seconds < 9_000_000_000 else { return 9_000_000_000_000_000_000 }
    return UInt64(seconds) * 1_000_000_000 + UInt64(attoseconds) / 1_000_000_000
  }
}
