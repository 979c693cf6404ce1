import FeedModel
import TestSupport
import Testing

@testable import FeedServer

/// When free memory is returned to the system.
struct FreedMemoryTests {
  private static let mebibyte = 1 << 20
  private static let second: UInt64 = 1_000_000_000

  /// Passes the needed MiB of each second, and returns the seconds in which memory was returned. The daemon works every tenth of
  /// a second, or only when it has set a deadline.
  private static func returns(_ needed: [Int], isIdle: Bool = false) -> [Int] {
    let start = Instant(nanoseconds: 77 * second)
    var memory = FreedMemory(now: start)
    var result: [Int] = []
    for (place, amount) in needed.enumerated() {
      for tenth in 0..<10 {
        let now = start.adding(nanoseconds: UInt64(place * 10 + tenth) * second / 10)
        let isWoken = memory.deadline.map { $0 <= now } ?? false
        let changes = tenth == 0 && (place == 0 || needed[place - 1] != amount)
        if isIdle && !isWoken && !changes { continue }
        if memory.isDue(amount * mebibyte, now: now) { result.append(place) }
      }
    }
    expect(memory.deadline == nil || !isIdle, "the daemon would wake up for ever")
    return result
  }

  private static func list(_ runs: (Int, seconds: Int)...) -> [Int] {
    runs.flatMap { Array(repeating: $0, count: $1) }
  }

  @Test(arguments: [false, true])
  func muchThatIsNotNeededForAPeriodIsReturnedOnce(isIdle: Bool) {
    for seconds in 1...12 {
      let times = Self.returns(Self.list((100, seconds), (60, 40)), isIdle: isIdle)
      expectEqual(times.count, 1)
      expect(times.allSatisfy { $0 - seconds >= 5 && $0 - seconds <= 11 }, "\(times) after \(seconds)")
    }
  }

  @Test(arguments: [false, true])
  func littleIsNotReturned(isIdle: Bool) {
    expectEqual(Self.returns(Self.list((100, 8), (69, 40)), isIdle: isIdle), [])
    expectEqual(Self.returns(Self.list((100, 8), (68, 40)), isIdle: isIdle).count, 1)
  }

  @Test(arguments: [false, true])
  func whatIsNeededAgainSoonIsNotReturned(isIdle: Bool) {
    let wave = (0..<20).flatMap { _ in Self.list((100, 2), (10, 3)) }
    let times = Self.returns(wave + Self.list((10, 20)), isIdle: isIdle)
    expect(times.count == 1 && times.allSatisfy { $0 >= wave.count })
  }

  @Test(arguments: [false, true])
  func eachFallIsReturned(isIdle: Bool) {
    let times = Self.returns(Self.list((100, 7), (60, 20), (20, 20), (90, 20), (0, 20)), isIdle: isIdle)
    expectEqual(times.count, 3)
  }
}
