import FeedModel
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine

/// The lists of watches that are not live: each watch is in exactly one, and a turn visits only those that can advance.
struct WatchScheduleTests {
  private let harness = EngineHarness()
  private let sessions: [Session]
  private let channel: FeedChannel

  init() throws {
    _ = harness.ask(harness.connect(), "define", #"{"feed":"c","kind":"array"}"#)
    channel = FeedChannel(try harness.engine.catalog.feed(named: "c"))
    sessions = (0..<3).map {
      Session(
        handle: SessionHandle(index: UInt32($0), generation: 1), peer: Peer(uid: 1, gid: 1, pid: 1),
        connectedAt: Instant(nanoseconds: 0))
    }
  }

  private static func moment(_ seconds: UInt64) -> Instant { Instant(nanoseconds: seconds * 1_000_000_000) }

  private func watch(of session: Int = 0, due: UInt64 = 0) -> Watch {
    let watch = Watch(
      session: sessions[session], number: 1, channel: channel, revision: 1, throttle: 1_000_000_000,
      spansSections: false,
      now: Self.moment(0))
    watch.progress = .behind
    watch.nextDelta = Self.moment(due)
    return watch
  }

  @Test func readyWatchesAreVisitedInOrder() {
    var schedule = WatchSchedule()
    let watches = (0..<200).map { _ in watch() }
    for watch in watches { schedule.add(watch, isConnectionFull: false, now: Self.moment(0)) }
    for place in stride(from: 0, to: 200, by: 3) { schedule.remove(watches[place]) }
    schedule.checkInvariants()
    var taken: [ObjectIdentifier] = []
    while let watch = schedule.takeReady() {
      taken.append(ObjectIdentifier(watch))
      schedule.checkInvariants()
    }
    expectEqual(taken, watches.indices.filter { $0 % 3 != 0 }.map { ObjectIdentifier(watches[$0]) })
    expectEqual(schedule.readyCount, 0)
    expect(watches.allSatisfy { $0.seat == .standing })
  }

  @Test func watchesOfAFullConnectionWaitUntilItHasRoom() {
    var schedule = WatchSchedule()
    let watches = (0..<6).map { watch(of: $0 % 3) }
    for watch in watches { schedule.add(watch, isConnectionFull: true, now: Self.moment(0)) }
    expect(schedule.readyCount == 0 && schedule.blockedCount == 6)
    schedule.remove(watches[0])
    schedule.release(sessions[1].id, now: Self.moment(0))
    schedule.checkInvariants()
    expectEqual(watches.map(\.seat), [.standing, .ready, .blocked, .blocked, .ready, .blocked])
    schedule.release(ConnectionID(rawValue: 99), now: Self.moment(0))
    expectEqual(schedule.blockedCount, 3)
  }

  @Test func throttledWatchesAreReleasedWhenDue() {
    var schedule = WatchSchedule()
    let order: [UInt64] = [7, 3, 9, 1, 5, 8, 2, 6, 4, 10]
    let watches = order.map { watch(due: $0) }
    for watch in watches { schedule.add(watch, isConnectionFull: true, now: Self.moment(0)) }
    schedule.checkInvariants()
    expectEqual(schedule.nextThrottle, Self.moment(1))
    schedule.remove(watches[3])
    expectEqual(schedule.nextThrottle, Self.moment(2))
    schedule.releaseThrottled(now: Self.moment(4))
    schedule.checkInvariants()
    expect(schedule.readyCount == 3 && schedule.throttledCount == 6)
    schedule.hurry(watches[9], now: Self.moment(4))
    schedule.checkInvariants()
    expectEqual(watches[9].seat, .ready)
    expectEqual(schedule.nextThrottle, Self.moment(5))
  }

  /// The invariants hold after each of many random additions and removals.
  @Test(arguments: UInt64(1)...5) func randomMovesKeepTheInvariants(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    var schedule = WatchSchedule()
    let watches = (0..<40).map { _ in watch(of: Int.random(in: 0..<3, using: &random)) }
    for step in 0..<2000 {
      let now = Self.moment(UInt64(step / 10))
      switch Int.random(in: 0..<6, using: &random) {
      case 0: schedule.releaseThrottled(now: now)
      case 1: schedule.release(ConnectionID(rawValue: Int.random(in: 0..<3, using: &random)), now: now)
      case 2: _ = schedule.takeReady()
      default:
        let watch = watches[Int.random(in: 0..<watches.count, using: &random)]
        if watch.seat == .standing {
          watch.nextDelta = Self.moment(UInt64(step / 10 + Int.random(in: 0..<8, using: &random)))
          schedule.add(watch, isConnectionFull: Bool.random(using: &random), now: now)
        } else {
          schedule.remove(watch)
        }
      }
      schedule.checkInvariants()
    }
    let seated = watches.count { $0.seat != .standing }
    expectEqual(schedule.readyCount + schedule.throttledCount + schedule.blockedCount, seated)
  }
}
