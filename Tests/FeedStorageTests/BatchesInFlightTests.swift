import FeedSystem
import TestSupport
import Testing

@testable import FeedStorage

struct WriteTimesTests {
  private static let millisecond: UInt64 = 1_000_000
  private var times = WriteTimes()
  private var now: UInt64 = 1_000_000_000_000

  @Test mutating func shortWritesAreLeftToTheCaller() {
    for _ in 0..<1000 {
      expectEqual(times.begin(at: now), true)
      times.didWrite(at: now + Self.millisecond)
      now += Self.millisecond
    }
  }

  /// Writes 50 ms each while the disk is slow. Returns for how many milliseconds the thread writes before the caller does again.
  private mutating func wait(isThreadSlow: (Int) -> Bool) -> Int {
    expectEqual(times.begin(at: now), true)
    times.didWrite(at: now + 50 * Self.millisecond)
    now += 50 * Self.millisecond
    for waited in 0... {
      if times.begin(at: now) { return waited }
      times.didStore(at: now + (isThreadSlow(waited) ? 3 : 1) * Self.millisecond)
      now += Self.millisecond
    }
    return 0
  }

  @Test mutating func longWritesAreLeftToTheThreadForLongerEachTime() {
    expectEqual((0..<9).map { _ in wait { _ in false } }, [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000])
    // A while without waits makes the next one the first.
    now += 11_000 * Self.millisecond
    expectEqual(times.begin(at: now), true)
    times.didWrite(at: now + Self.millisecond)
    expectEqual(wait { _ in false }, 100)
  }

  @Test mutating func theThreadGoesOnWhileItHasToWait() {
    let waited = wait { $0 < 1000 }
    expect(waited > 1000 && waited <= 1000 + 3 + 200)
  }
}

struct RoomForBatchesTests {
  private var room = RoomForBatches()
  private let error = StorageError(.noSpace, path: "/state", reason: "full")

  @Test mutating func onlyARefusedBatchThatWaitedIsAShortage() {
    room.didFail(error, now: 0)
    expectEqual(room.shortage { false }, nil)
    room.beginToWait()
    expect(room.isAwaited)
    room.didStore()
    expect(!room.isAwaited)
    expectEqual(room.shortage { false }, nil)
    room.beginToWait()
    room.didFail(error, now: 0)
    expect(!room.isAwaited)
    expectEqual(room.shortage { false }, error.description)
  }

  @Test mutating func aShortageLastsUntilThereIsRoom() {
    room.beginToWait()
    room.didFail(error, now: 0)
    expectEqual(room.shortage { true }, nil)
    expectEqual(room.shortage { false }, nil)
    // The free space is not looked at each time.
    room.beginToWait()
    room.didFail(error, now: MonotonicClock.now + 3_600_000_000_000)
    expectEqual(room.shortage { true }, error.description)
  }
}
