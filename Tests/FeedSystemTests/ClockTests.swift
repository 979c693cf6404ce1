import FeedSystem
import Testing

@Suite("Clocks")
struct ClockTests {
  @Test func goesOnAndIsRoundedUpForWaits() {
    let first = MonotonicClock.now
    #expect(MonotonicClock.now >= first)
    #expect(MonotonicClock.milliseconds(until: first) == 0)
    #expect(MonotonicClock.milliseconds(until: MonotonicClock.now + 100) == 1)
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
