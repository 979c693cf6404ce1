import FeedSystem
import Testing

@Suite("Clocks")
struct ClockTests {
  @Test func goesOnAndIsRoundedUpForWaits() {
    let first = MonotonicClock.now
    #expect(MonotonicClock.now >= first)
    #expect(MonotonicClock.milliseconds(until: first) == 0)
    // A wait of so many milliseconds does not end before the time has come, whenever it begins.
    let hour: UInt64 = 3_600_000_000_000
    let deadline = MonotonicClock.now + hour - 1
    let wait = MonotonicClock.milliseconds(until: deadline)
    #expect(UInt64(wait) * 1_000_000 >= deadline - MonotonicClock.now && wait <= 3_600_000)
    #expect(MonotonicClock.milliseconds(until: .max) == .max)
    #expect(WallClock.now > 1_600_000_000_000_000_000)
  }

  @Test(
    arguments: [
      (Duration.zero, 0), (.nanoseconds(1), 1), (.milliseconds(1500), 1_500_000_000), (.seconds(-1), 0),
      (.seconds(Int64.max), 9_000_000_000_000_000_000),
    ] as [(Duration, UInt64)])
  func timesAreBroughtIntoRange(time: Duration, nanoseconds: UInt64) {
    #expect(time.clampedNanoseconds == nanoseconds)
  }
}
