import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Simulator

/// Random histories of a whole daemon. Tests/README.md describes the simulator.
///
/// 10,000 histories; 100,000 with `scripts/test --long`. `FEEDD_SIMULATIONS` sets another number. The seeds of nine of ten are
/// fixed, the others are fresh in each run. `FEEDD_SEED` replays one, and with `FEEDD_SIMULATIONS` it is the first. A failing seed
/// prints the shortest history found that still fails; if the process crashes, it prints the seed. `FEEDD_TRACE` prints what
/// is done as it is done.
struct SimulationTests {
  @Test("no history breaks a promise")
  func histories() async {
    let count = UInt64(max(1, TestEffort.count(10_000, long: 100_000, variable: "FEEDD_SIMULATIONS")))
    if let seed = TestEffort.seed {
      let isAlone = ProcessInfo.processInfo.environment["FEEDD_SIMULATIONS"] == nil
      _ = await Self.play([seed..<seed + (isAlone ? 1 : count)])
      return
    }
    let fresh = UInt64.random(in: 1 << 48..<1 << 62)
    let (fixed, random) = (1..<count - count / 10 + 1, fresh..<fresh + count / 10)
    guard let events = await Self.play([fixed, random]), count >= 3000 else { return }
    var required = [
      "delta", "part", "reset", "resumed", "bookmark", "end", "error", "bye badFrame", "bye limit", "bye shutdown",
      "failed batch", "eviction", "kill", "power loss", "new epoch",
    ]
    if count >= 10_000 { required += ["bye frameTimeout", "changes lost"] }
    // About one in 10,000.
    if count >= 100_000 { required.append("unacknowledged batch kept") }
    for event in required {
      expect(events[event, default: 0] > 0, "no history met \(event): \(events)")
    }
  }

  /// Plays the histories of seeds on all processors. Returns what their clients met; nil after reporting a failure.
  private static func play(_ seeds: [Range<UInt64>]) async -> [String: Int]? {
    let queue = SeedQueue(seeds)
    return await withTaskGroup(of: [String: Int].self) { group in
      for _ in 0..<ProcessInfo.processInfo.activeProcessorCount {
        group.addTask {
          var events: [String: Int] = [:]
          while let seeds = queue.next() {
            for seed in seeds {
              guard let met = play(seed) else {
                queue.stop()
                return events
              }
              events.merge(met) { $0 + $1 }
            }
            await Task.yield()
          }
          return events
        }
      }
      let events = await group.reduce(into: [:]) { $0.merge($1) { $0 + $1 } }
      return queue.isStopped ? nil : events
    }
  }

  /// Plays the history of a seed. Returns what its clients met; nil after reporting a short version of a failure.
  private static func play(_ seed: UInt64) -> [String: Int]? {
    let history = History(seed: seed)
    switch history.play() {
    case .success(let events): return events
    case .failure(let failure):
      let (short, last) = history.shortened(failure)
      let trace = last.trace.joined(separator: "\n  ")
      Issue.record(
        "FEEDD_SEED=\(seed): \(last.message)\n\(short.steps.count) of \(history.steps.count) steps:\n  \(trace)")
      return nil
    }
  }

  /// In the last one, the rows of a view are counted while a definition stops for others.
  @Test("a seed replays exactly", arguments: [1, 8, 18, 39, 312, 272_953] as [UInt64])
  func determinism(_ seed: UInt64) throws {
    let history = History(seed: seed)
    let one = try Simulation(seed: seed)
    try one.run(history.steps)
    let two = try Simulation(seed: seed)
    try two.run(history.steps)
    expectEqual(one.trace, two.trace)
    expectEqual(one.events, two.events)
  }

  @Test("the auditor notices each kind of sabotage", arguments: Sabotage.allCases)
  func sabotage(_ sabotage: Sabotage) throws {
    let histories = (UInt64(1)...40).lazy.map { History(seed: $0, sabotage: sabotage, count: 40) }
    let failing = histories.compactMap { history in
      if case .failure(let failure) = history.play() { (history, failure) } else { nil }
    }
    let (history, failure) = try require(failing.first)
    let (short, last) = history.shortened(failure)
    expect(short.steps.count < history.steps.count)
    expect(!last.message.isEmpty)
  }

  @Test("a crash of the process names the seed in play")
  func crash() async throws {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      SeedsInPlay.during(1234) { () -> Void in preconditionFailure("a broken promise") }
    }
    let errors = String(decoding: try require(result).standardErrorContent, as: UTF8.self)
    expect(errors.contains("FEEDD_SEED=1234\n"))
  }
}

/// Hands out seeds in small groups.
private final class SeedQueue: Sendable {
  private struct State {
    var ranges: [Range<UInt64>]
    var isStopped = false
  }

  private let state: Mutex<State>

  init(_ ranges: [Range<UInt64>]) { state = Mutex(State(ranges: ranges)) }

  var isStopped: Bool { state.withLock(\.isStopped) }

  /// Ends the queue after a failure.
  func stop() {
    state.withLock { state in
      state.ranges = []
      state.isStopped = true
    }
  }

  /// Returns the next seeds; nil when there are no more.
  func next() -> Range<UInt64>? {
    state.withLock { state in
      while let range = state.ranges.first {
        if range.isEmpty {
          state.ranges.removeFirst()
          continue
        }
        let group = range.lowerBound..<min(range.upperBound, range.lowerBound + 20)
        state.ranges[0] = group.upperBound..<range.upperBound
        return group
      }
      return nil
    }
  }
}
