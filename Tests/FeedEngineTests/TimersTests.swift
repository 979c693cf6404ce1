import FeedModel
import TestSupport
import Testing

@testable import FeedEngine

/// The timer wheel with slots of one second.
struct TimersTests {
  private final class Entry: Timed {
    var timer = TimerSeat()
  }

  private static func moment(_ seconds: Double) -> Instant { Instant(nanoseconds: UInt64(seconds * 1_000_000_000)) }

  @Test func entriesExpireInTheirSecond() {
    var timers = Timers<Entry>(now: Self.moment(100))
    let entries = [Entry(), Entry(), Entry()]
    timers.add(entries[0], at: Self.moment(101))
    timers.add(entries[1], at: Self.moment(101.2))
    timers.add(entries[2], at: Self.moment(99))
    expect(timers.takeExpired(now: Self.moment(100.9)).isEmpty)
    let expired = timers.takeExpired(now: Self.moment(101.5))
    expectEqual(Set(expired.map(ObjectIdentifier.init)), [ObjectIdentifier(entries[0]), ObjectIdentifier(entries[2])])
    expectEqual(timers.takeExpired(now: Self.moment(102)).map(ObjectIdentifier.init), [ObjectIdentifier(entries[1])])
    expectEqual(timers.count, 0)
  }

  @Test func removedEntriesDoNotExpire() {
    var timers = Timers<Entry>(now: Self.moment(0))
    let entries = (0..<5).map { _ in Entry() }
    for entry in entries { timers.add(entry, at: Self.moment(3)) }
    timers.remove(entries[1])
    timers.remove(entries[1])
    timers.checkInvariants()
    expectEqual(timers.takeExpired(now: Self.moment(10)).count, 4)
  }

  @Test func entriesBeyondOneRevolutionExpireInTheirSecond() {
    var timers = Timers<Entry>(now: Self.moment(0))
    let entry = Entry()
    timers.add(entry, at: Self.moment(200))
    expect(timers.takeExpired(now: Self.moment(199)).isEmpty)
    timers.checkInvariants()
    expectEqual(timers.takeExpired(now: Self.moment(200)).count, 1)
  }

  @Test func entriesThatAreLeftExpireInTheNextCall() {
    var timers = Timers<Entry>(now: Self.moment(0))
    let entries = (0..<100).map { _ in Entry() }
    for (place, entry) in entries.enumerated() { timers.add(entry, at: Self.moment(Double(1 + place % 10))) }
    var taken: [ObjectIdentifier] = []
    var counts: [Int] = []
    for _ in 0..<5 {
      let expired = timers.takeExpired(now: Self.moment(10), atMost: 30)
      counts.append(expired.count)
      taken += expired.map(ObjectIdentifier.init)
      // What is added between two calls has its own time.
      if let entry = expired.first { timers.add(entry, at: Self.moment(20)) }
      timers.checkInvariants()
    }
    expectEqual(counts, [30, 30, 30, 10, 0])
    expectEqual(Set(taken), Set(entries.map(ObjectIdentifier.init)))
    expectEqual(timers.takeExpired(now: Self.moment(20)).count, 4)
  }

  /// Compares random operations with a linear search.
  @Test(arguments: UInt64(1)...5) func randomOperationsMatchALinearSearch(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    var timers = Timers<Entry>(now: Self.moment(0))
    var expected: [(second: UInt64, entry: Entry)] = []
    var now: UInt64 = 0
    for _ in 0..<500 {
      let entry = Entry()
      let second = now + UInt64.random(in: 1...150, using: &random)
      timers.add(entry, at: Instant(nanoseconds: second * 1_000_000_000))
      expected.append((second, entry))
      if Bool.random(using: &random), let place = expected.indices.randomElement(using: &random) {
        timers.remove(expected.remove(at: place).entry)
      }
      now += UInt64.random(in: 0...3, using: &random)
      let expired = Set(timers.takeExpired(now: Instant(nanoseconds: now * 1_000_000_000)).map(ObjectIdentifier.init))
      expectEqual(expired, Set(expected.filter { $0.second <= now }.map { ObjectIdentifier($0.entry) }))
      expected.removeAll { $0.second <= now }
      timers.checkInvariants()
      expectEqual(timers.count, expected.count)
    }
  }
}
