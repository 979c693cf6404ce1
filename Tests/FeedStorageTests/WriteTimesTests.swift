import TestSupport
import Testing

@testable import FeedStorage

@Suite struct WriteTimesTests {
  private static let millisecond: UInt64 = 1_000_000
  private var times = WriteTimes()
  private var now: UInt64 = 1_000_000_000_000

  @Test mutating func shortWritesAreLeftToTheCaller() {
    for _ in 0..<1000 {
      #expect(times.areShort(now: now))
      times.didWrite(from: now, to: now + Self.millisecond)
      now += Self.millisecond
    }
  }

  /// Writes 50 ms each while the disk is slow. Returns for how many milliseconds the thread writes before the caller does again.
  private mutating func wait(isThreadSlow: (Int) -> Bool) -> Int {
    times.didWrite(from: now, to: now + 50 * Self.millisecond)
    now += 50 * Self.millisecond
    for waited in 0... {
      if times.areShort(now: now) { return waited }
      times.threadDidWrite(from: now, to: now + (isThreadSlow(waited) ? 3 : 1) * Self.millisecond)
      now += Self.millisecond
    }
    return 0
  }

  @Test mutating func longWritesAreLeftToTheThreadForLongerEachTime() {
    expectEqual((0..<9).map { _ in wait { _ in false } }, [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000])
    // A while without waits makes the next one the first.
    now += 11_000 * Self.millisecond
    times.didWrite(from: now, to: now + Self.millisecond)
    expectEqual(wait { _ in false }, 100)
  }

  @Test mutating func theThreadGoesOnWhileItHasToWait() {
    let waited = wait { $0 < 1000 }
    #expect(waited > 1000 && waited <= 1000 + 3 + 200)
  }
}
